"""The executor that `cluster=` means, opened and closed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pgmult.core.arguments import brief
from pgmult.sampling.cluster.executors import Cluster, Executor
from pgmult.sampling.cluster.processes import Processes

_CUT = 20  # sweeps between two cuts, by default


@contextmanager
def opened(
    cluster: object, shards: int | None, cut: int | None, cores: int
) -> Iterator[Cluster | None]:
    """What `cluster`, `shards` and `cut` of `pgmult.sample` mean; closed if it was made here."""
    if cluster is None:
        yield None
        return
    executor: Executor
    if isinstance(cluster, Executor):
        executor = cluster
    elif cluster == "local":
        executor = Processes(cores)
    else:  # loads asyncio, which nothing else does
        from pgmult.sampling.cluster.dask import DaskCluster

        executor = DaskCluster(cluster)
    try:
        yield Cluster(executor, shards or executor.num_slots, cut or _CUT)
    finally:
        if executor is not cluster:
            executor.close()


def check_cluster(cluster: object) -> None:
    """Refuse what is neither a cluster nor a string that names one."""
    distributed = sys.modules.get("distributed")
    is_client = distributed is not None and isinstance(cluster, distributed.Client)
    is_executor = isinstance(cluster, Executor) and not isinstance(cluster, type)
    is_named = isinstance(cluster, str) and (cluster == "local" or "://" in cluster)
    if cluster is not None and not (is_named or is_client or is_executor):
        raise (ValueError if isinstance(cluster, str) else TypeError)(
            "cluster must be 'local' (processes of this machine), the address of a Dask scheduler"
            f" such as 'tcp://10.0.0.1:8786', or a dask.distributed.Client, got {brief(cluster)}"
        )
