"""Lab 9: find the fault. A student's generator asks the tools of an incident, and answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from common.seeds import Purpose, derive
from common.terminal.counted import counted
from course.box.box import BoxError
from course.exercise import Exercise, StudentWork, Test
from course.result import Gate, TestOutcome, judged
from operations.incident import KINDS, AnswerError, Incident, IncidentSession, commands, nodes_of, parse, recorded
from operations.incident.draw import draw
from running import RunDirectory
from topo.graph import links

# An incident of lab 9: drawn for a kind of fault, and investigated by a student's generator through the tools.
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
        return tuple((fault.component, fault.kind) for fault in self.incident.hidden)

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
        incident = draw(start + number, level)
        if fits(incident):
            return incident
    raise AssertionError(f"no incident of level {level} fits")


def early(incident: Incident) -> Incident:
    """The same with faults that have begun before the operator comes."""
    return replace(incident, hidden=tuple(replace(fault, onset_s=ONSET_S) for fault in incident.hidden))


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
    inquiry = Inquiry(incident)
    directory = RunDirectory.create(work.folder / "runs", "incident", derive_number(incident))
    session = IncidentSession(early(incident), directory, CALLED_S)
    name = work.path.name
    try:
        with work.box() as box:
            number, _ = box.make("find", briefing(session))
            told: dict[str, Any] | None = None
            while inquiry.answer is None:
                line = sent(box.call, told, number, name)
                inquiry.asked.append(line)
                if line.startswith("answer "):
                    inquiry.answer = answered(session, line, name)
                    break
                inquiry.lab_s = round(session.used_s + lasts_s(line), 3)
                if inquiry.lab_s > LAB_S_MAX or len(inquiry.asked) > COMMANDS_MAX:
                    break
                told = carried_out(session, line, name)
    finally:
        inquiry.lab_s = max(inquiry.lab_s, session.used_s)
        session.close()
    return inquiry


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


COMMANDS, LAB_S = 12, 25.0
CASES: dict[str, tuple[int, str]] = {
    "cable": (1, "dead-cable"),
    "nic": (1, "nic-port-down"),
    "loss": (1, "one-way-loss"),
    "table": (2, "missing-entry"),
    "calm": (2, ""),
}
"""By test: the level, and the kind that is hidden; "" for an incident in which nothing is wrong."""

FAULTY = tuple(name for name, (_, kind) in CASES.items() if kind)


def inquiry(work: StudentWork, name: str) -> Inquiry:
    """The investigation of a case, carried out once per check."""
    level, kind = CASES[name]

    def fits(incident: Incident) -> bool:
        return [fault.kind for fault in incident.hidden] == ([kind] if kind else [])

    return work.once(name, lambda: investigate(work, drawn(work, name, level, fits)))


def answer_text(pairs: tuple[tuple[str, str], ...] | None) -> str:
    """An answer as it is typed."""
    if pairs is None:
        return "nothing"
    return ", ".join(f"{component} {kind}" for component, kind in pairs) or "none"


def cause(inquiry: Inquiry) -> str:
    """Why an answer is wrong, and the commands that would have shown the fault."""
    plan = inquiry.incident.plan
    if inquiry.answer is None:
        return f"no answer within {LAB_S_MAX:g} s of lab time: each command takes a second, and --watch what it says"
    if not inquiry.truth:
        return "nothing is wrong: packets on their way, and 0.2 % that a cable may lose, are no fault"
    hidden = inquiry.incident.hidden[0]
    shows = f"{recorded()[hidden.kind]['hint']} It shows in: {'; '.join(commands(plan, hidden))}"
    kinds = {kind for _, kind in inquiry.answer}
    near = any(nodes_of(plan, component) & nodes_of(plan, hidden.component) for component, _ in inquiry.answer)
    if len(inquiry.answer) > 1:
        return f"one fault is hidden, and {len(inquiry.answer)} were named. {shows}"
    if not inquiry.answer:
        return f"something was missed. {shows}"
    if hidden.kind in kinds:
        return f"the kind is right, the {KINDS[hidden.kind].component} is not. {shows}"
    return f"{'the place is near, the kind is wrong' if near else 'another place'}. {shows}"


def case(name: str, sentence: str) -> Callable[[StudentWork], TestOutcome]:
    """The test of one incident."""

    def run(work: StudentWork) -> TestOutcome:
        done = inquiry(work, name)
        asked = counted(len(done.asked), "command")
        told = f"answered {answer_text(done.answer)} after {asked} and {done.lab_s:g} s of lab time"
        gates = [Gate("right answers", done.right, 1)]
        if not done.truth:  # "none" is worth something from those who find what is there
            elsewhere = sum(inquiry(work, other).right for other in FAULTY)
            cause_none = "the answer none counts once a fault of another incident is found"
            gates.append(Gate("faults found elsewhere", elsewhere, 1, cause=cause_none))
        advice = f"the truth is {answer_text(done.truth)}: {cause(done)}"
        return judged(sentence, told, gates, (done.command,), advice)

    return run


def cheap(work: StudentWork) -> TestOutcome:
    done = {name: inquiry(work, name) for name in CASES}
    most = max(done, key=lambda name: len(done[name].asked))
    longest = max(done, key=lambda name: done[name].lab_s)
    gates = (
        Gate("commands", len(done[most].asked), COMMANDS, at_most=True),
        Gate("lab time", done[longest].lab_s, LAB_S, " s", at_most=True),
    )
    told = f"at most {len(done[most].asked)} commands ({most}) and {done[longest].lab_s:g} s of lab time ({longest})"
    advice = "a command without a node asks all of them at once; watch the counters once, for about ten seconds"
    return judged("a fault is found with few commands, and soon", told, gates, (done[most].command,), advice)


LAB = Exercise(
    name="faults",
    title="Find the fault: four incidents, and a calm one",
    minutes=150,
    tests=(
        Test("cable", "a cable without light", 1, case("cable", "a cable is dead")),
        Test("nic", "a NIC that has left", 1, case("nic", "a NIC's port is off")),
        Test("loss", "packets vanish in one direction", 3, case("loss", "a cable loses packets in one direction")),
        Test("table", "a switch lacks a row", 3, case("table", "a table lacks a row of the plan")),
        Test("calm", "nothing is wrong", 2, case("calm", "nothing is wrong, and the answer is none")),
        Test("cheap", "few commands, and soon", 2, cheap),
    ),
)
