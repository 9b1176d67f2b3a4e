"""Sweeps whose rows are elsewhere: in processes of this machine, or on a cluster.

`files` is what driver and workers tell each other, `tasks` what a worker does, `rows` a chain as
its driver sees it, and `executors` (`processes`, `dask`) where tasks are done.
"""
