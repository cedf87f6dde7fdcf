"""Lab 1: uSIDs by hand. Each answer is compared with the plan's own; a wrong address is walked through the fabric."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from common.quoting import command
from course.box.box import BoxError
from course.exercise import Exercise, StudentWork, Test, typed
from course.labs.usids.naming import named
from course.labs.usids.questions import ASKED, Question, draw_plan, plan_text, questions
from course.result import Gate, TestOutcome
from topo import Plan
from topo.address import address_usids
from topo.path import walk


def answers(work: StudentWork) -> dict[str, object]:
    """The student's dictionary. BoxError when there is none."""
    with work.box() as box:
        _, watched = box.tell([], of=0, watch=["ANSWERS"])
    given = watched.get("ANSWERS")
    if not isinstance(given, dict):
        raise BoxError(f"{work.path.name}: ANSWERS must be a dictionary of texts (got {given!r})")
    return given


def answered(name: str) -> Callable[[StudentWork], TestOutcome]:
    """The test of one answer."""

    def run(work: StudentWork) -> TestOutcome:
        plan, asked = questions(work.seed)
        question = asked[name]
        all_answers = work.once("answers", lambda: answers(work))
        given = str(all_answers.get(name, "")).strip()
        right = same(given, question.answer)
        happened = f"{name} is {given!r}" if given else f"{name} is empty"
        if given and not right:
            happened += f": {cause(plan, question, given)}"
        plan_file = work.path.with_suffix(".toml")
        drawn = typed(plan_file) if plan_file.exists() else "mylab/usids.toml"
        look = (command("topo", "draw", drawn), "./lab course page 1")
        return TestOutcome(right, question.asked, happened, (Gate("right", right, 1),), () if right else look)

    return run


def same(given: str, answer: str) -> bool:
    """Whether two answers are one: addresses and numbers in any of their forms."""
    given = given.strip().lower()
    if ":" in answer:
        try:
            return ipaddress.IPv6Address(given) == ipaddress.IPv6Address(answer)
        except ValueError:
            return False
    if answer.startswith("0x"):
        try:
            return int(given, 16) == int(answer, 16)
        except ValueError:
            return False
    return given == answer.lower()


def cause(plan: Plan, question: Question, given: str) -> str:
    """Why an answer is wrong, without the right one."""
    if question.answer.startswith("0x"):
        return "an EV has the plane in its high 16 bits, and 0xc000 + spine in its low ones"
    if not question.usids:
        if question.answer.isdigit():
            return "each switch on the way takes one off, and hosts take none"
        return "follow the packet: each switch shifts its own uSID away, and looks the next one up among its neighbours"
    try:
        address = ipaddress.IPv6Address(given)
    except ValueError:
        return "this is not an IPv6 address"
    if address not in plan.usid_block:
        return f"the address must begin with the block, {plan.usid_block}"
    return misplaced(plan, question, address)


def misplaced(plan: Plan, question: Question, address: ipaddress.IPv6Address) -> str:
    """The first uSID that is wrong, and where a packet to this address goes."""
    usids, wanted = address_usids(plan, address), list(question.usids)
    if usids == wanted[::-1]:
        return "the order is reversed: the uSID that is used first comes right behind the block"
    if usids == wanted[1:]:
        return "the first uSID is missing: the sender's own leaf consumes a uSID as well"
    if len(usids) < len(wanted) and usids == wanted[: len(usids)]:
        return f"the list ends too early: it needs {len(wanted)} uSIDs, down to the NIC's"
    if question.source is None and usids[-len(wanted) :] == wanted:
        return "uSIDs of hops that are behind the packet have been shifted away"
    place = next((at for at, (usid, two) in enumerate(zip(usids, wanted, strict=False)) if usid != two), len(wanted))
    wrong = (
        f"uSID {place + 1} is {usids[place]:#06x}, {named(plan, usids[place])}" if place < len(usids) else "it is short"
    )
    if place >= len(wanted):
        wrong = f"the list is longer than the path: {len(usids)} uSIDs instead of {len(wanted)}"
    if question.source is None:
        return wrong
    entered = walk(plan, question.source, question.plane, address)
    return f"{wrong}; a packet to it ends at {entered[-1].node}"


def fill(text: str, seed: int) -> str:
    """The starter with the student's plan and questions."""
    plan, asked = questions(seed)
    lines = [f'    # {question.asked}.\n    "{name}": "",  # GAP' for name, question in asked.items()]
    words = (
        f"{plan.planes} planes, {plan.leaves} leaves and {plan.spines} spines per plane,"
        f" {plan.hosts_per_leaf} hosts per leaf; block {plan.usid_block}"
    )
    return text.replace("@PLAN@", words).replace("    # @QUESTIONS@", "\n".join(lines))


def solve(text: str, seed: int) -> str:
    """The reference with the answers of a seed."""
    _, asked = questions(seed)
    return text.replace("    # @ANSWERS@", "\n".join(f'    "{name}": "{q.answer}",' for name, q in asked.items()))


LAB = Exercise(
    name="usids",
    title="uSIDs by hand",
    minutes=60,
    tests=tuple(Test(name, title, 1, answered(name)) for name, (title, _) in ASKED.items()),
    fill=fill,
    extra=lambda seed: {"usids.toml": plan_text(draw_plan(seed))},
    solve=solve,
    answers=True,
)
