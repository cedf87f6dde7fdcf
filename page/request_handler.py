"""The requests of the page to the lab's process: a fixed set of operations with unchecked arguments."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from common.fields import Fields
from topo import Plan
from topo.fault import Fault

OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "state": (),
    "fault": ("lane", "verb", "target", "value"),
    "undo": ("lane", "verb", "target", "value"),
    "heal": (),
    "pause": (),
    "resume": (),
    "step": (),
    "trace": ("lane", "source", "destination", "ev", "bytes", "trimmed_at"),
    "answer": ("lane", "packet"),
    "scenario": (),
}
"""Every operation with the names of its arguments."""
TEXT_MAX = 80
PAYLOAD_MAX = 4096
NUMBER_MAX = 1 << 53
"""The largest whole number that the page's JSON holds exactly."""

Trace = Callable[[int, str, str, int, int, str | None], dict[str, Any]]
"""Follows a packet: lane, source, destination, EV, payload bytes, the switch whose queue is full."""

Answer = Callable[[int, int], dict[str, Any]]
"""The receiver's answer about a packet of the packet log: lane, the packet's number there."""


class PageRequestError(ValueError):
    """A request that cannot be carried out; nothing was changed."""


class FaultInjector(Protocol):
    """A lab or a world whose faults may be changed from any thread."""

    def inject(self, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault: ...
    def undo(self, fault: Fault) -> None: ...
    def faults(self) -> list[Fault]: ...


class Pausable(Protocol):
    """A run in virtual time, which can be held."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def step(self) -> None: ...
    @property
    def paused(self) -> bool: ...


class RequestHandler:
    """Answers the page's server. Complaints are exceptions, whose messages people read."""

    def __init__(
        self,
        plans: Sequence[Plan],
        trace: Trace,
        *,
        injector: FaultInjector | None = None,
        pausable: Pausable | None = None,
        played: Callable[[], Mapping[str, Any]] | None = None,
        answer: Answer | None = None,
        why_not: str = "nothing runs here that could be broken",
    ) -> None:
        """`played` writes what was done by hand as a scenario. Without `injector`, `why_not` says why not.

        `injector` is that of lane 0; `injectors` takes those of further lanes.
        """
        self._plans = plans
        self._trace_packet = trace
        self.injectors: dict[int, FaultInjector] = {} if injector is None else {0: injector}
        self.why_not = why_not
        self._pausable = pausable
        self._played = played
        self._answer_to = answer

    def do(self, request: Mapping[str, Any]) -> Any:
        """Carries out one request."""
        op = request.get("op")
        if not isinstance(op, str) or op not in OPERATIONS:
            raise PageRequestError(f"no operation {str(op)[:TEXT_MAX]!r}: valid are {', '.join(OPERATIONS)}")
        fields = {key: value for key, value in request.items() if key not in ("id", "op")}
        return getattr(self, f"_{op}")(Fields(op, fields, PageRequestError, OPERATIONS[op]))

    def _state(self, fields: Fields) -> dict[str, Any]:
        """The actions that are possible here, and the faults in force."""
        there = dict(self.injectors)
        faults = [
            {**({"lane": lane} if lane else {}), "verb": fault.verb, "target": fault.target, "value": fault.value}
            for lane, injector in sorted(there.items())
            for fault in injector.faults()
        ]
        return {
            "breakable": bool(there),
            "why_not": "" if there else self.why_not,
            "faults": faults,
            "pausable": self._pausable is not None,
            "paused": self._pausable is not None and self._pausable.paused,
            "scenario": self._played is not None,
        }

    def _fault(self, fields: Fields) -> dict[str, Any]:
        value = fields.number("value", 0, 1e9) if fields.has("value") else None
        fault = self._broken(fields).inject(text(fields, "verb"), text(fields, "target"), value)
        return {"done": fault.describe()}

    def _undo(self, fields: Fields) -> dict[str, Any]:
        """The last one of a verb on a target; with a value, the last one with that value."""
        there, verb, target = self._broken(fields), text(fields, "verb"), text(fields, "target")
        value = fields.number("value", 0, 1e9) if fields.has("value") else None
        for fault in reversed(there.faults()):
            if (fault.verb, fault.target) == (verb, target) and value in (None, fault.value):
                there.undo(fault)
                return {"done": f"undone: {fault.describe()}"}
        in_force = ", ".join(map(str, there.faults())) or "none"
        which = f"{verb} {target}" + ("" if value is None else f" {value:g}")
        raise PageRequestError(f"{which} is not in force; faults in force: {in_force}")

    def _heal(self, fields: Fields) -> dict[str, Any]:
        there = list(self.injectors.values())
        if not there:
            raise PageRequestError(self.why_not)
        count = 0
        for injector in there:
            for fault in reversed(injector.faults()):
                injector.undo(fault)
                count += 1
        return {"done": f"{count} undone"}

    def _broken(self, fields: Fields) -> FaultInjector:
        """The fabric of a request's lane."""
        there = self.injectors.get(fields.integer("lane", 0, len(self._plans) - 1, 0))
        if there is None:
            raise PageRequestError(self.why_not)
        return there

    def _pause(self, fields: Fields) -> dict[str, Any]:
        self._held().pause()
        return {"paused": True}

    def _resume(self, fields: Fields) -> dict[str, Any]:
        self._held().resume()
        return {"paused": False}

    def _step(self, fields: Fields) -> dict[str, Any]:
        self._held().step()
        return {"paused": True}

    def _held(self) -> Pausable:
        if self._pausable is None:
            raise PageRequestError("only a run in virtual time can be held: real time goes on")
        return self._pausable

    def _trace(self, fields: Fields) -> dict[str, Any]:
        lane = fields.integer("lane", 0, len(self._plans) - 1, 0)
        plan = self._plans[lane]
        trimmed_at = text(fields, "trimmed_at") if fields.has("trimmed_at") else None
        if trimmed_at is not None:
            plan.switch_node(trimmed_at)
        source, destination = plan.host(text(fields, "source")).name, plan.host(text(fields, "destination")).name
        ev, size = fields.integer("ev", 0, 0xFFFFFFFF), fields.integer("bytes", 0, PAYLOAD_MAX, 64)
        return self._trace_packet(lane, source, destination, ev, size, trimmed_at)

    def _answer(self, fields: Fields) -> dict[str, Any]:
        if self._answer_to is None:
            raise PageRequestError("nothing is recorded here")
        lane, packet = fields.integer("lane", 0, len(self._plans) - 1, 0), fields.integer("packet", 1, NUMBER_MAX)
        return self._answer_to(lane, packet)

    def _scenario(self, fields: Fields) -> dict[str, Any]:
        if self._played is None:
            raise PageRequestError("there is no run here that could become a scenario")
        return dict(self._played())


def text(fields: Fields, key: str) -> str:
    """A short text."""
    value = fields.string(key)
    if len(value) > TEXT_MAX:
        fields.fail(key, f"a text of at most {TEXT_MAX} letters")
    return value
