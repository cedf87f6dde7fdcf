"""One run in virtual time on several processes, which MPI joins. `rank` is an MPI rank here, one process of the run."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from running.parallel.one_machine import end_with_parent
    from running.parallel.world import Partition, PartWorld
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = ["PartWorld", "Partition", "communicator", "end_with_parent", "runs"]
