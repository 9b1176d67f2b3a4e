"""Sweeps whose rows are updated elsewhere: in processes of this machine, or on a cluster.

`files` has what driver and workers exchange, `tasks` what a worker does, `rows` a chain as its
driver sees it, and `executors` (`processes`, `dask`) where tasks run.
"""
