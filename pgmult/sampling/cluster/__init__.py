"""Sweeps whose rows are updated elsewhere: in processes of this machine, or on a cluster.

`files` has what driver and workers exchange, `tasks` what a worker does, `rows` a chain as its
driver sees it, `executors` (`processes`, `dask`) where tasks run, and `opening` which of them.
"""
