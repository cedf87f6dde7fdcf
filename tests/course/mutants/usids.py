"""Wrong answers of lab 1, and attempts to pass without solving it."""

import ipaddress
import re
from collections.abc import Callable

from course.labs.usids.questions import questions
from tests.course.mutants.mutant import Mutant, whole
from topo.address import address_usids, usid_address
from topo.plan import Plan


def answer(name: str, wrong: Callable[[Plan, str], str]) -> Callable[[str, int], str]:
    """The reference with one answer made wrong."""

    def change(text: str, seed: int) -> str:
        plan, asked = questions(seed)
        changed = wrong(plan, asked[name].answer)
        return re.sub(rf'"{name}": ".*"', f'"{name}": "{changed}"', text)

    return change


def usids(wrong: Callable[[list[int]], list[int]]) -> Callable[[Plan, str], str]:
    """An address with its uSIDs changed."""
    return lambda plan, text: str(usid_address(plan, wrong(address_usids(plan, ipaddress.IPv6Address(text)))))


MUTANTS = (
    Mutant("reversed", answer("path-1", usids(lambda found: found[::-1])), "reversed"),
    Mutant("without the own leaf", answer("path-1", usids(lambda found: found[1:])), "first uSID is missing"),
    Mutant("without the NIC", answer("path-2", usids(lambda found: found[:-1])), "ends too early"),
    Mutant("plane forgotten", answer("path-2", usids(lambda found: [found[0] % 512 + 0x1000, *found[1:]])), "p0l"),
    Mutant("another block", answer("path-1", lambda plan, text: "2001:db8::1"), "begin with the block"),
    Mutant("across a spine", answer("local", usids(lambda found: [found[0], 0x2000, *found])), "longer|uSID [234]"),
    Mutant("not shifted", answer("shift", usids(lambda found: [0x1000, *found])), "behind the packet"),
    Mutant("one way only", answer("probe", usids(lambda found: found[:2])), "too early"),
    Mutant("another host", answer("arrival", lambda plan, text: f"h{int(text[1:]) + 1}"), "follow the packet"),
    Mutant("EV halves swapped", answer("ev", lambda plan, text: f"0x{text[6:]}{text[2:6]}"), "plane in its high"),
    Mutant("hosts count as hops", answer("hop-limit", lambda plan, text: str(int(text) - 2)), "hosts take none"),
)  # fmt: skip

CHEATS = (
    Mutant(
        "asks the lab",
        whole("from course.labs.usids.questions import questions\nANSWERS = questions(1)\n"),
        "can't be imported",
    ),
    Mutant("reads the notes", whole("ANSWERS = eval(open('mylab/.course.json').read())\n"), "can't open files"),
    Mutant("runs a command", whole("import subprocess\nANSWERS = {}\n"), "can't be imported"),
    Mutant(
        "answers that agree with everything",
        whole(
            "class Any(str):\n    def __eq__(self, other):\n        return True\n    __hash__ = str.__hash__\n"
            "class All(dict):\n    def get(self, *_):\n        return Any()\n    __getitem__ = get\n"
            "ANSWERS = All({'path-1': Any('fcbb::')})\n"
        ),
        "path-1",
    ),
    Mutant("constants", lambda text, seed: whole_answers(0), "path-1"),
)


def whole_answers(seed: int) -> str:
    """The right answers of another seed."""
    _, asked = questions(seed)
    return f"ANSWERS = { {name: one.answer for name, one in asked.items()}!r}\n"
