"""An incident of lab 9: drawn for a kind of fault, and investigated by a student's generator through the tools."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from common.seeds import Purpose, derive
from course.box.box import BoxError
from course.exercise import StudentWork
from operations.incident import AnswerError, Incident, IncidentSession, parse
from operations.incident.draw import draw
from running import RunDirectory
from topo.graph import links

ONSET_S, CALLED_S = 0.5, 3.0
"""The fault begins early, and the operator comes soon after: a check has a minute for all incidents."""
LAB_S_MAX, COMMANDS_MAX = 40.0, 60
"""After so much lab time, or so many commands, the operator is sent home."""
WORDS_MAX = 200


@dataclass(slots=True)
class Inquiry:
    """The outcome of an investigation: the answer as pairs of component and kind, the commands, the time."""

    incident: Incident
    answer: tuple[tuple[str, str], ...] | None = None
    asked: list[str] = field(default_factory=list)
    lab_s: float = 0.0

    @property
    def truth(self) -> tuple[tuple[str, str], ...]:
        return tuple((one.component, one.kind) for one in self.incident.hidden)

    @property
    def right(self) -> bool:
        return self.answer is not None and set(self.answer) == set(self.truth)

    @property
    def command(self) -> str:
        """The command with which a reader looks at the same incident by hand."""
        return f"./lab incident --level {self.incident.level} --seed {self.incident.seed}"


def drawn(work: StudentWork, name: str, level: int, fits: Callable[[Incident], bool]) -> Incident:
    """An incident that fits, for a student and a file: every version of the file meets other places."""
    digest = hashlib.sha256(work.source.encode(errors="replace")).hexdigest()
    start = work.rng(f"incident {name} {digest}").getrandbits(40)
    for number in range(10_000):
        found = draw(start + number, level)
        if fits(found):
            return found
    raise AssertionError(f"no incident of level {level} fits")


def early(incident: Incident) -> Incident:
    """The same with faults that have begun before the operator comes."""
    return replace(incident, hidden=tuple(replace(one, onset_s=ONSET_S) for one in incident.hidden))


def briefing(session: IncidentSession) -> dict[str, Any]:
    """The things that an operator knows beforehand."""
    plan = session.incident.plan
    return {
        "level": session.incident.level,
        "hosts": [host.name for host in plan.hosts()],
        "switches": [switch.name for switch in plan.switches()],
        "cables": [f"{link.a.node}-{link.b.node}" for link in links(plan)],
        "allowed_loss_percent": 0.2,
    }


def investigate(work: StudentWork, incident: Incident) -> Inquiry:
    """Let the student's generator ask until it answers. BoxError for what is no command and no answer."""
    found = Inquiry(incident)
    directory = RunDirectory.create(work.folder / "runs", "incident", derive_number(incident))
    session = IncidentSession(early(incident), directory, CALLED_S)
    name = work.path.name
    try:
        with work.box() as box:
            number, _ = box.make("find", briefing(session))
            told: dict[str, Any] | None = None
            while found.answer is None:
                line = sent(box.call, told, number, name)
                found.asked.append(line)
                if line.startswith("answer "):
                    found.answer = answered(session, line, name)
                    break
                found.lab_s = round(session.used_s + lasts_s(line), 3)
                if found.lab_s > LAB_S_MAX or len(found.asked) > COMMANDS_MAX:
                    break
                told = carried_out(session, line, name)
    finally:
        found.lab_s = max(found.lab_s, session.used_s)
        session.close()
    return found


def derive_number(incident: Incident) -> int:
    """A number for the folder's name that does not give the incident's seed away."""
    return int(hashlib.sha256(str(derive(incident.seed, Purpose.INCIDENT)).encode()).hexdigest()[:8], 16)


def sent(call: Callable[..., Any], told: dict[str, Any] | None, number: int, name: str) -> str:
    """The next line that the generator yields."""
    try:
        line = call("send", told, of=number)
    except BoxError as error:
        if "must have 'send'" in str(error):
            raise BoxError(f"{name}: find must yield commands, such as: seen = yield 'inspect'") from None
        if ": StopIteration:" in str(error):
            raise BoxError(f"{name}: find ended without an answer: yield 'answer none' if nothing is wrong") from None
        raise
    if not isinstance(line, str) or len(line) > WORDS_MAX:
        raise BoxError(f"{name}: find must yield a text of at most {WORDS_MAX} characters (got {line!r:.80})")
    return line


def answered(session: IncidentSession, line: str, name: str) -> tuple[tuple[str, str], ...]:
    """The pairs of an answer."""
    try:
        return tuple(session.parsed(line.split()[1:]))
    except AnswerError as error:
        raise BoxError(f"{name}: {line!r}: {error}") from None


def lasts_s(line: str) -> float:
    """The lab time that a command asks for, beside the second that looking takes; 0 for words that are no command."""
    try:
        _, arguments = parse(line)
    except ValueError:
        return 0.0
    return max(float(arguments.get(key, 0.0)) for key in ("watch", "seconds"))


def carried_out(session: IncidentSession, line: str, name: str) -> dict[str, Any]:
    """The answer of a tool."""
    try:
        return session.do(*parse(line), line)
    except ValueError as error:
        raise BoxError(f"{name}: {line!r} is no command and no answer: {error}") from None
