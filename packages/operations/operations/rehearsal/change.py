"""A change file: a plan, steps with times, and what counts as noticed. Every complaint names file, line and choices."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from common import plain_file
from common.fields import TOML_BYTES_MAX, Fields, parse_toml
from scenarios import TimedFault
from topo import Plan, PlanError, load_plan
from topo.fault import VERBS, FaultError, make_fault

ACTIONS: Mapping[str, str] = {
    "drain": "drain",
    "reboot": "switch-reboot",
    "replace": "switch-crash",
    "stop": "switch-stop",
    "cut": "link-down",
    "unplug": "port-down",
    "drain-port": "drain-port",
    "replace-optics": "optics-down",
    "rate": "rate",
}
"""A step's actions, each with the fault verb that does it. `replace` is a switch that is gone until its successor runs.

`replace-optics` is a NIC whose transceiver is out: all its ports are dark."""
_PLACE = (
    "a host's place decides its address, its uSIDs and entries of all switches, and a run has one plan. Rehearse the"
    " move as `unplug` of the NIC's ports, and write a second change with the new plan"
)
_TABLE = (
    "the entries of switches follow from the plan, and a run has one plan. Rehearse the new plan as a second change,"
    " with --against; ./lab incident shows what a wrong entry does"
)
REFUSED: Mapping[str, str] = {"move": _PLACE, "move hosts": _PLACE, "table": _TABLE, "change a table": _TABLE}
"""Steps that a rehearsal cannot take, with the reason."""
SECONDS_MAX = 120.0
PLAN_KEYS = ("planes", "leaves", "spines", "hosts_per_leaf")


class ChangeError(ValueError):
    """A change file that cannot be rehearsed; the message names file, line, rule and choices."""


@dataclass(frozen=True, slots=True)
class ChangeStep:
    """One step: at `at_s` seconds of the change, `action` on `target`, for `for_s` seconds or to the end."""

    action: str
    target: str
    at_s: float
    for_s: float | None
    value: float | None

    @property
    def fault(self) -> TimedFault:
        """The step as a run carries it out."""
        return TimedFault(self.at_s, ACTIONS[self.action], self.target, self.for_s, self.value)

    def describe(self) -> str:
        """The step for people."""
        lasting = "" if self.for_s is None else f" for {self.for_s:g} s"
        return f"{self.action} {self.target} at {self.at_s:g} s{lasting}"


@dataclass(frozen=True, slots=True)
class Noticed:
    """When a change is noticed: a training step so many times as long as without the change, less of the goodput; or in
    the job's own terms, a step of more milliseconds, more tokens lost (None: not asked)."""

    step_time: float = 2.0
    goodput: float = 0.9
    step_ms: float | None = None
    tokens: float | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """A change. `flaps` is how many cables flap beside it in each run; `safe` the most that may notice, as a share."""

    name: str
    plan: Plan
    steps: tuple[ChangeStep, ...]
    noticed: Noticed
    seconds: float
    flaps: int
    safe: float
    tokens_per_step: int = 0
    """Tokens that a training step of the job learns from; 0: not told."""


def read(path: Path) -> Planned:
    """The change in a file. ChangeError or OSError."""
    return parsed(plain_file.read_named(path, TOML_BYTES_MAX), path)


def parsed(text: str, path: Path) -> Planned:
    """The change in a text; complaints name `path`. ChangeError."""
    return _Reader(path, text).planned(parse_toml(text, str(path), ChangeError))


class _Reader:
    """Reads one document; knows on which line each key is."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = dict(_places(text))

    def line(self, error: object) -> int:
        """The line of the key with which a complaint begins, or of the table that it is missing in; else the first."""
        match = re.match(r"[\w.\[\]]+", str(error))
        name = match[0] if match else ""
        while name not in self._lines and name:
            name = name.rpartition(".")[0]
        return self._lines.get(name, 1)

    def fail(self, line: int, error: object) -> ChangeError:
        return ChangeError(f"{self._path}:{line}: {error}")

    def planned(self, document: object) -> Planned:
        known = ("name", "plan", "fabric", "seconds", "flaps", "safe", "tokens_per_step", "noticed", "step")
        try:
            body = Fields("", document, ChangeError, known)
            plan = self._plan(body)
            rows = body.rows("step", ("do", "target", "at_s", "for_s", "value"))
            told = body.fields("noticed", default={})
            Fields("noticed", told.values, ChangeError, ("step_time", "goodput", "step_ms", "tokens"))
            usual = Noticed()
            noticed = Noticed(
                told.number("step_time", 1.05, 100.0, usual.step_time),
                told.number("goodput", 0.0, 1.0, usual.goodput),
                told.number("step_ms", 0.001, 1e6) if told.has("step_ms") else None,
                told.number("tokens", 1.0, 1e15) if told.has("tokens") else None,
            )
            tokens_per_step = body.integer("tokens_per_step", 1, 10**12) if body.has("tokens_per_step") else 0
            if noticed.tokens is not None and not tokens_per_step:
                raise ChangeError("noticed.tokens needs tokens_per_step, the tokens of a training step of the job")
            name, safe = body.string("name"), body.number("safe", 0.001, 0.999, 0.1)
            if not name.isprintable():
                body.fail("name", "one line of printable characters")
            seconds, flaps = body.number("seconds", 1.0, SECONDS_MAX), body.integer("flaps", 0, 20, 1)
        except (ValueError, PlanError) as error:
            raise self.fail(self.line(error), error) from None
        steps = tuple(self._step(plan, index, row, seconds) for index, row in enumerate(rows))
        if not steps:
            raise self.fail(1, "a change must have at least one [[step]]")
        return Planned(name, plan, steps, noticed, seconds, flaps, safe, tokens_per_step)

    def _plan(self, body: Fields) -> Plan:
        shape = body.fields("fabric", default={}).values
        Fields("fabric", shape, ChangeError, PLAN_KEYS)
        overrides = {f"fabric.{key}": str(value) for key, value in shape.items()}
        return load_plan(body.string("plan"), {"switch": "embedded", **overrides}, overridden_by="")

    def _step(self, plan: Plan, index: int, row: Fields, seconds: float) -> ChangeStep:
        line = self.line(f"step[{index}]")
        try:
            if (refused := row.string("do")) in REFUSED:
                valid = ", ".join(ACTIONS)
                raise ChangeError(f"{refused!r} cannot be rehearsed: {REFUSED[refused]}. Valid are {valid}")
            action = row.choice("do", tuple(ACTIONS))
            at_s = row.number("at_s", 0.0, seconds)
            for_s = row.number("for_s", 0.001, seconds - at_s) if row.has("for_s") else None
            value = row.number("value", 0.0, 1e9) if row.has("value") else None
            step = ChangeStep(action, row.string("target"), at_s, for_s, value)
            make_fault(plan, ACTIONS[action], step.target, value)
        except (ValueError, FaultError) as error:
            raise self.fail(max(line, self.line(error)), f"step {index + 1}: {error}") from None
        if for_s is not None and not VERBS[ACTIONS[action]].lasting:
            raise self.fail(line, f"step {index + 1}: {action} is over by itself: leave for_s out (got {for_s:g})")
        return step


def _places(text: str) -> Iterator[tuple[str, int]]:
    """Each key with its line, as complaints spell it: `seconds`, `noticed.goodput`, `step[0].at_s`."""
    table, steps = "", -1
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*\[\[\s*step\s*\]\]", line):
            steps += 1
            table = f"step[{steps}]"
            yield table, number
        elif match := re.match(r"\s*\[\s*(\w+)\s*\]", line):
            table = match[1]
            yield table, number
        elif match := re.match(r"\s*(\w+)\s*=", line):
            yield f"{table}.{match[1]}" if table else match[1], number
