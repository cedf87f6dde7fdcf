"""One farm of jobs for sweeps, contests, hunts, figures and rehearsals: this process, others, or a Dask cluster."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from studies.farm.cluster import Cluster, ClusterAddress
    from studies.farm.engine import Engine, Inline, Job, folder
    from studies.farm.pool import Pool
    from studies.farm.progress import Progress
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = ["Cluster", "ClusterAddress", "Engine", "Inline", "Job", "Pool", "Progress", "folder"]
