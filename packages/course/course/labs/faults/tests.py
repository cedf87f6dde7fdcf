"""Lab 9: find the fault. A student's generator asks the tools of an incident, and answers."""

from __future__ import annotations

from collections.abc import Callable

from course.exercise import Exercise, StudentWork, Test
from course.labs.faults.investigating import LAB_S_MAX, Inquiry, drawn, investigate
from course.result import Gate, TestOutcome, judged
from operations.incident import KINDS, Incident, commands, nodes_of, recorded

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
        return [one.kind for one in incident.hidden] == ([kind] if kind else [])

    return work.once(name, lambda: investigate(work, drawn(work, name, level, fits)))


def words(pairs: tuple[tuple[str, str], ...] | None) -> str:
    """An answer as it is typed."""
    if pairs is None:
        return "nothing"
    return ", ".join(f"{component} {kind}" for component, kind in pairs) or "none"


def cause(found: Inquiry) -> str:
    """Why an answer is wrong, and the commands that would have shown the fault."""
    plan = found.incident.plan
    if found.answer is None:
        return f"no answer within {LAB_S_MAX:g} s of lab time: each command takes a second, and --watch what it says"
    if not found.truth:
        return "nothing is wrong: packets on their way, and 0.2 % that a cable may lose, are no fault"
    hidden = found.incident.hidden[0]
    shows = f"{recorded()[hidden.kind]['hint']} It shows in: {'; '.join(commands(plan, hidden))}"
    kinds = {kind for _, kind in found.answer}
    near = any(nodes_of(plan, one) & nodes_of(plan, hidden.component) for one, _ in found.answer)
    if len(found.answer) > 1:
        return f"one fault is hidden, and {len(found.answer)} were named. {shows}"
    if not found.answer:
        return f"something was missed. {shows}"
    if hidden.kind in kinds:
        return f"the kind is right, the {KINDS[hidden.kind].component} is not. {shows}"
    return f"{'the place is near, the kind is wrong' if near else 'another place'}. {shows}"


def case(name: str, sentence: str) -> Callable[[StudentWork], TestOutcome]:
    """The test of one incident."""

    def run(work: StudentWork) -> TestOutcome:
        found = inquiry(work, name)
        told = f"answered {words(found.answer)} after {len(found.asked)} commands and {found.lab_s:g} s of lab time"
        gates = [Gate("right answers", found.right, 1)]
        if not found.truth:  # "none" is worth something from those who find what is there
            elsewhere = sum(inquiry(work, one).right for one in FAULTY)
            cause_none = "the answer none counts once a fault of another incident is found"
            gates.append(Gate("faults found elsewhere", elsewhere, 1, cause=cause_none))
        advice = f"the truth is {words(found.truth)}: {cause(found)}"
        return judged(sentence, told, gates, (found.command,), advice)

    return run


def cheap(work: StudentWork) -> TestOutcome:
    found = {name: inquiry(work, name) for name in CASES}
    most = max(found, key=lambda name: len(found[name].asked))
    longest = max(found, key=lambda name: found[name].lab_s)
    gates = (
        Gate("commands", len(found[most].asked), COMMANDS, at_most=True),
        Gate("lab time", found[longest].lab_s, LAB_S, " s", at_most=True),
    )
    told = f"at most {len(found[most].asked)} commands ({most}) and {found[longest].lab_s:g} s of lab time ({longest})"
    advice = "a command without a node asks all of them at once; watch the counters once, for about ten seconds"
    return judged("a fault is found with few commands, and soon", told, gates, (found[most].command,), advice)


LAB = Exercise(
    number=9,
    name="faults",
    title="Find the fault: four incidents, and a calm one",
    minutes=150,
    file="faults.py",
    tests=(
        Test("cable", "a cable without light", 1, case("cable", "a cable is dead")),
        Test("nic", "a NIC that has left", 1, case("nic", "a NIC's port is off")),
        Test("loss", "packets vanish in one direction", 3, case("loss", "a cable loses packets in one direction")),
        Test("table", "a switch lacks a row", 3, case("table", "a table lacks a row of the plan")),
        Test("calm", "nothing is wrong", 2, case("calm", "nothing is wrong, and the answer is none")),
        Test("cheap", "few commands, and soon", 2, cheap),
    ),
)
