"""Guards around algorithms of a user's own: an error of theirs ends the run, and names file and line.

The endpoint may be compiled while the user's file is interpreted, so each guard calls the user's object through Python
and copies what the endpoint reads of it. The guards themselves are interpreted.
"""

from collections.abc import Callable, Iterable
from random import Random
from types import CodeType
from typing import Any, NamedTuple

from endpoint.mrc.congestion.cc_profile import PathTraits
from endpoint.mrc.congestion.congestion import Congestion
from endpoint.mrc.congestion.granter import CREDIT_UNIT, CreditGranter
from endpoint.mrc.loss.loss_detection import LossDetection, PacketWindow
from endpoint.mrc.operations import EndpointOperations
from endpoint.mrc.parameter import Values
from endpoint.mrc.paths.ev_set import EvPath, EvSet
from endpoint.mrc.paths.selection import Selection
from endpoint.mrc.paths.signals import Signals, overrides
from endpoint.mrc.peer import Peer
from endpoint.mrc.peers import PeerTable
from endpoint.nic.config import NEVER, AlgorithmError
from endpoint.nic.events import EventLog
from endpoint.nic.port import PortSet
from endpoint.nic.scheduler import Agenda

RAISED = (Exception, SystemExit, GeneratorExit)
"""Exceptions of a user's code that are told; only Ctrl-C passes through."""
WRAPPED = ("__func__", "fget", "func", "__wrapped__")
"""Where class methods, properties and decorated methods keep the function that they are made of."""


class ClassPlace(NamedTuple):
    """The file that a setting names, and the line of its class statement."""

    file: str
    line: int


USERS: dict[type[Any], ClassPlace] = {}
"""The classes from users' files."""
BYTES_MAX = 1 << 48
BPS_MAX = 1 << 50


def definer(kind: type[Any], member: str) -> type[Any] | None:
    """The class of the user's that has this method or attribute; None where it is the lab's own, or there is none."""
    for base in kind.__mro__:
        if member in base.__dict__:
            return base if is_users(base) else None
    return None


def is_users(definition: Any) -> bool:
    """Whether a class or a function is neither the lab's nor Python's."""
    return str(getattr(definition, "__module__", "")).partition(".")[0] not in ("endpoint", "builtins")


def code_of(member: Any) -> CodeType | None:
    """The code of a user's method or property; None for other attributes, and where a class borrows from the lab's."""
    for _ in range(8):  # decorators around decorators
        inner = [getattr(member, name, None) for name in WRAPPED]
        inner = [function for function in inner if function is not None]
        if not inner:
            break
        member = inner[0]
    code = getattr(member, "__code__", None)
    return code if isinstance(code, CodeType) and is_users(member) else None


class Guarded:
    """One object of a user's class. Every call and every value that comes back goes through here."""

    def __init__(self, kind: type[Any], seam: str, *arguments: Any, make: str = "__init__") -> None:
        """`make` is the class method that gives the object; by itself the class."""
        self.kind = kind
        self.seam = seam
        self.make = make
        self.asked = make
        """The method that was called last: wrong attributes are its work."""
        self.object: Any = None
        maker: Any = kind if make == "__init__" else getattr(kind, make)
        self.object = self.call(lambda: maker(*arguments), make)

    def call(self, work: Callable[[], Any], member: str) -> Any:
        """The result of `work`. Raises `AlgorithmError` with the line that raised."""
        try:
            return work()
        except AlgorithmError:
            raise
        except RAISED as error:
            raise self.algorithm_error(error, member) from error

    def ask(self, method: str, *arguments: Any) -> Any:
        """The answer of one of the object's methods."""
        self.asked = method
        return self.call(lambda: getattr(self.object, method)(*arguments), method)

    def read(self, name: str, default: Any = None) -> Any:
        """An attribute of the object; the default where neither the object nor its class has it. Properties may raise,
        as methods may."""
        try:
            return getattr(self.object, name)
        except RAISED as error:
            if isinstance(error, AttributeError) and definer(type(self.object), name) is None:
                return default
            raise self.algorithm_error(error, name) from error

    def integer(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """An attribute that must be an integer in a range; with a default, an object may lack it."""
        value = self.read(name, default)
        if type(value) is not int or not low <= value <= high:
            raise self.broken(self.asked, f"{name} must be an integer from {low} to {high} (got {value!r})")
        return value

    def algorithm_error(self, error: BaseException, member: str) -> AlgorithmError:
        """The error that an exception of this method or attribute ends the run with: with the last line of the user's
        that the exception came through; where it came through none (wrong arguments), the line of the method."""
        kind, place = self.kind_with(member), self.place(member)
        files, frame = (place.file, USERS[self.kind].file), error.__traceback__
        while frame is not None:
            if frame.tb_frame.f_code.co_filename in files:
                place = ClassPlace(frame.tb_frame.f_code.co_filename, frame.tb_lineno)
            frame = frame.tb_next
        what = f"{type(error).__name__}: {error} (in {self.seam} {kind.__name__}.{member})"
        return AlgorithmError(f"{place.file}:{place.line}: {what}")

    def broken(self, method: str, rule: str) -> AlgorithmError:
        """The error of a class that breaks a rule of its seam in this method."""
        kind, place = self.kind_with(method), self.place(method)
        return AlgorithmError(f"{place.file}:{place.line}: {self.seam} {kind.__name__}.{method}: {rule}")

    def kind_with(self, member: str) -> type[Any]:
        """The class that has this method: the object's, which another class may have made."""
        kind: type[Any] = self.kind if self.object is None or member == self.make else type(self.object)
        return kind

    def place(self, member: str) -> ClassPlace:
        """Where the user's method is; where the method is the lab's own, the user's class."""
        kind = self.kind_with(member)
        owner = definer(kind, member)
        codes = [code_of(owner.__dict__[member])] if owner is not None else []
        if kind not in USERS:  # of which the line is not known: that of the first method
            codes += [code_of(value) for users in kind.__mro__ if is_users(users) for value in users.__dict__.values()]
        for code in codes:
            if code is not None:
                return ClassPlace(code.co_filename, code.co_firstlineno)
        return USERS[kind] if kind in USERS else USERS[self.kind]


class Guard:
    """A guard's methods in `asks` ask the user's object, and then copy what the endpoint reads of it."""

    _guarded: Guarded

    def __init_subclass__(cls, asks: Iterable[str] = ()) -> None:
        def forward(name: str) -> Callable[..., None]:
            def asked(self: Guard, *arguments: Any) -> None:
                self._ask(name, *arguments)

            return asked

        for name in asks:
            setattr(cls, name, forward(name))

    def _ask(self, method: str, *arguments: Any) -> Any:
        self._share()
        returned = self._guarded.ask(method, *arguments)
        self._copy()
        return returned

    def _share(self) -> None:
        """Tell the object what the endpoint has set."""

    def _copy(self) -> None:
        """Take over what the object has set."""

    def listener(self) -> Signals:
        return GuardedSignals(self._guarded, self._copy)


HEARD = [name for name in vars(Signals) if name.startswith("on_") and name != "on_timer"]


class GuardedSignals(Guard, Signals, asks=HEARD):
    """The ears of a user's object: it is told, and `after` looks at what the object made of it."""

    def __init__(self, guarded: Guarded, after: Callable[[], None]) -> None:
        self._guarded = guarded
        self._after = after

    def _copy(self) -> None:
        self._after()

    def hears(self, name: str) -> bool:
        return overrides(self._guarded.kind, name)

    @property
    def due_ns(self) -> int:
        return self._guarded.integer("due_ns", 0, NEVER)

    @due_ns.setter
    def due_ns(self, due_ns: int) -> None:
        self._guarded.object.due_ns = due_ns

    def attach(self, agenda: Agenda) -> None:
        self._guarded.call(lambda: self._guarded.object.attach(agenda), self._guarded.make)

    def on_timer(self, now_ns: int) -> None:
        self._ask("on_timer", now_ns)
        if self.due_ns <= now_ns:
            raise self._guarded.broken("on_timer", f"it must set due_ns later than {now_ns} (got {self.due_ns})")


class GuardedSelection(Guard, Selection):
    """A user's path selection."""

    def __init__(self, kind: type[Any], evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self._guarded = Guarded(kind, "selection", evs, rng, values)
        self.heeds = kind.heeds_signals
        own = self._guarded.read("heeds_signals")
        if own is not self.heeds:
            rule = f"as a class attribute (the class has {self.heeds}, the object {own!r})"
            raise self._guarded.broken("__init__", f"heeds_signals must be set in the class body, {rule}")
        self._copy()

    def _copy(self) -> None:
        wanted: Any = self._guarded.read("wanted_probes", self.wanted_probes)
        if type(wanted) is not list or not all(isinstance(path, EvPath) and self._is_own(path) for path in wanted):
            raise self._guarded.broken(
                self._guarded.asked, f"wanted_probes must be a list of EvPaths of evs (got {wanted!r})"
            )
        self.wanted_probes = wanted

    def _is_own(self, path: EvPath) -> bool:
        """Whether this is this queue pair's; others have EvPaths of the same EVs, perhaps to other hosts."""
        return self.evs.paths.get(path.ev) is path

    def next(self, usable: int) -> EvPath | None:
        path = self._ask("next", usable)
        if path is None:
            return None
        if not (isinstance(path, EvPath) and self._is_own(path)):
            got = f"EV {path.ev:#x} is not" if isinstance(path, EvPath) else f"got {path!r}"
            raise self._guarded.broken("next", f"it must return an EvPath of this queue pair's evs, or None ({got})")
        if not path.active or not path.plane.wanted:
            rule = f"EV {path.ev:#x} is not in rotation; take one of plane.active of a plane of evs.live"
            raise self._guarded.broken("next", rule)
        if not path.port.bit & usable:
            rule = f"EV {path.ev:#x} leaves by port {path.port.number}, which may not send now (usable is {usable:#b})"
            raise self._guarded.broken("next", rule)
        return path


CONGESTION = ("on_ack", "on_trim", "on_loss", "on_timeout", "host_was_late", "on_penalty", "on_credit")
GRANTER = ("on_packet_arrived", "on_packet_trimmed", "on_ports_changed", "on_closed")
LOSS = ("rtt_sample", "late_rtt", "late_arrival", "true_loss", "forget_plane")


class GuardedCongestion(Guard, Congestion, asks=CONGESTION):
    """A user's congestion control."""

    def __init__(self, kind: type[Any], path: PathTraits, values: Values, shared: dict[str, Any]) -> None:
        super().__init__(path, values, shared)
        own_make = any("make" in base.__dict__ for base in kind.__mro__ if base is not Congestion)
        make = "make" if own_make else "__init__"
        self._guarded = Guarded(kind, "congestion", path, values, shared, make=make)
        self._copy()

    def _copy(self) -> None:
        self.window_bytes = self._guarded.integer("window_bytes", 0, BYTES_MAX)
        self.pacing_bps = self._guarded.integer("pacing_bps", 0, BPS_MAX, 0)
        self.ports_open = self._guarded.integer("ports_open", -1, BYTES_MAX, -1)


class GuardedGranter(Guard, CreditGranter, asks=GRANTER):
    """The receiving side of a user's congestion control."""

    def __init__(self, kind: type[Any], path: PathTraits, values: Values) -> None:
        super().__init__()
        self._guarded = Guarded(kind, "congestion", path, values, make="receiver")
        self.grants_anything = self._guarded.object is not None
        if self.grants_anything:
            self._copy()

    def _copy(self) -> None:
        due_ns = self._guarded.read("due_ns")
        if type(due_ns) is not int or due_ns < 0:
            raise self._guarded.broken(self._guarded.asked, f"due_ns must be an integer of at least 0 (got {due_ns!r})")
        self.due_ns = due_ns

    def grants(self, now_ns: int) -> list[tuple[int, int]]:
        grants = self._ask("grants", now_ns)
        if not isinstance(grants, list):
            raise self._guarded.broken("grants", f"it must return a list of (qp, bytes) (got {grants!r})")
        for grant in grants:
            right = type(grant) is tuple and len(grant) == 2 and type(grant[0]) is int and type(grant[1]) is int
            if not right or not 0 < grant[1] <= BYTES_MAX or grant[1] % CREDIT_UNIT:
                rule = f"a grant must be (qp, bytes) with a positive multiple of {CREDIT_UNIT} bytes (got {grant!r})"
                raise self._guarded.broken("grants", rule)
        if self.due_ns <= now_ns:
            raise self._guarded.broken("grants", f"it must set due_ns later than {now_ns} (got {self.due_ns})")
        return grants


class GuardedLossDetection(Guard, LossDetection, asks=LOSS):
    """A user's loss rule."""

    def __init__(self, kind: type[Any], base_rtt_ns: int, jitter_ns: int, values: Values) -> None:
        super().__init__(base_rtt_ns, jitter_ns, values)
        self._guarded = Guarded(kind, "loss", base_rtt_ns, jitter_ns, values)
        self._guarded.call(self._share_log, "__init__")
        self._copy()

    def _share_log(self) -> None:
        self.log = self._guarded.object.log

    def _copy(self) -> None:
        self.window_ns = self._guarded.integer("window_ns", 1, BYTES_MAX)
        self.slowest_ns = self._guarded.integer("slowest_ns", 0, BYTES_MAX)
        self.longest_ns = self._guarded.integer("longest_ns", 0, BYTES_MAX)

    def _share(self) -> None:
        self._guarded.call(lambda: setattr(self._guarded.object, "newest_ns", self.newest_ns), "newest_ns")

    def overdue(self, flight: PacketWindow, window_bytes: int) -> list[int]:
        indices = self._ask("overdue", flight, window_bytes)
        length, known = flight.nxt - flight.una, flight.acked | flight.lost
        if not isinstance(indices, list):
            raise self._guarded.broken("overdue", f"it must return a list of offsets from flight.una (got {indices!r})")
        for index in indices:
            if type(index) is not int or not 0 <= index < length or known >> index & 1:
                rule = f"each offset must be of a packet under way, from 0 to {length - 1}, once (got {index!r})"
                raise self._guarded.broken("overdue", rule)
            known |= 1 << index
        self.prune(flight)
        return indices

    def be_patient(self, patience_ns: int) -> None:
        self.patience_ns = patience_ns
        self._ask("be_patient", patience_ns)


class GuardedOperations(Guard, EndpointOperations, asks=("answered", "announce", "handle_timer")):
    """A user's rule for port status updates. EV probes are this object's; the tables of peers and ports are shared."""

    def __init__(
        self,
        kind: type[Any],
        peers: PeerTable,
        ports: PortSet,
        log: EventLog,
        rng: Random,
        on_peer_ports: Callable[[Peer, int, int], None],
    ) -> None:
        start = rng.getstate()
        self._guarded = Guarded(kind, "operations", peers, ports, log, rng, on_peer_ports)
        rng.setstate(start)  # so that a copy of the shipped rule gives the same request ids as the rule itself
        super().__init__(peers, ports, log, rng, on_peer_ports)

    def heed(self, peer: Peer, request_id: int, ports: int, now_ns: int) -> bool | None:
        decision = self._guarded.ask("heed", peer, request_id, ports, now_ns)
        if decision is None or type(decision) is bool:
            return decision
        raise self._guarded.broken("heed", f"it must return True, False or None (got {decision!r})")

    def next_timer_ns(self) -> int:
        due_ns = self._guarded.ask("next_timer_ns")
        if type(due_ns) is int and 0 <= due_ns <= NEVER:
            return due_ns
        raise self._guarded.broken("next_timer_ns", f"it must return an integer from 0 to NEVER (got {due_ns!r})")
