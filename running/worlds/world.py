"""The interface of a world to a runner: hosts to command, faults, a clock to wait on, and tables to verify."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from endpoint import AgentClient
from topo.fault import ActiveFaults


class WorldGoneError(RuntimeError):
    """Somebody took the lab down while a run was going on in it."""

    def __init__(self) -> None:
        super().__init__("the lab was taken down during the run; its journal until then is judged")


class Process(Protocol):
    """A program that runs in a host."""

    def poll(self) -> int | None:
        """Its exit status; None while it runs."""

    def terminate(self) -> None: ...


class World(Protocol):
    """A fabric with an agent in every host, up and provisioned."""

    active: ActiveFaults
    """The faults in force. A switch that crashed comes back with the plan's tables."""

    @property
    def clients(self) -> Mapping[str, AgentClient]:
        """The agents' control operations (endpoint/README.md), by host."""

    def now_ns(self) -> int:
        """The clock of the journal."""

    def wait_until(self, t_ns: int) -> None:
        """Returns when the clock shows `t_ns`, at once if that is past. WorldGoneError when it is taken down."""

    def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
        """Do a routing protocol's work: plain routes and ECMP groups without these links (baseline only)."""

    def verify(self) -> int:
        """Read all tables back; the number of differences from the plan's."""

    def sample_switches(self, interval_ns: int) -> None:
        """Journal the counters of all switches this often, where a world does not do so anyway."""

    def record_packets(self, start_ns: int, stop_ns: int, path: Path) -> None:
        """Log the fate of every packet in this stretch of time (`PacketLog`). ValueError where that cannot be."""

    def spawn(self, host: str, argv: Sequence[str], log: str) -> Process:
        """An ordinary process in a host, which ends with the world at the latest."""

    def reach(self, host: str, other: str, *, front_end: bool) -> str:
        """How a program in a host names another host to TCP: by the address in the fabric, or in the front-end network
        beside it. In virtual time, where there is no TCP, by its name."""

    def listens(self, host: str) -> bool:
        """Whether some program in a host waits for TCP connections."""

    def is_up(self, *, settled: bool = False) -> bool:
        """Whether the world is still there: another process may take a lab down. `settled` waits for one that does."""

    def close(self) -> None:
        """Take everything down."""
