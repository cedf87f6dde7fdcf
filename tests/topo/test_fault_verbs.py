"""A verb is spelled in one file: everything else takes verbs as data, so that adding one touches that file alone."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from topo.fault import VERBS

ROOT = Path(__file__).resolve().parents[2]
TABLE = "topo/fault/verb.py"
SCANNED = (
    "common", "controller", "endpoint", "switch", "topo", "cli/commands", "judging", "running",
    "scenarios/scenario.py", "running/worlds",
)  # fmt: skip
SPEAKING = {name for name in VERBS if "-" in name or name == "blackhole"}
"""Names that mean nothing but the verb; the others are also words of English and names of fields."""

# Where a plain word is a key of something else, with what it is there.
OTHER_MEANINGS = {
    ("topo/fault/condition.py", "loss"): "a key of a path's condition in JSON",
    ("running/view/lab_view.py", "loss"): "a port's share of lost packets in JSON",
    ("judging/jobs.py", "loss"): "what a training job minimises",
    ("judging/reports/plots.py", "loss"): "what a training job minimises",
    ("switch/reference/externs.py", "rate"): "a slot of a meter's bucket",
    ("endpoint/mrc/paths/ev_state.py", "loss"): "why a path's state changed",
    ("endpoint/mrc/algorithms.py", "loss"): "the setting that names a loss rule",
    ("endpoint/mrc/seams/guards.py", "loss"): "the setting that names a loss rule",
    ("endpoint/plugins.py", "loss"): "the setting that names a loss rule",
    ("running/options.py", "rate"): "the option of a run",
    ("cli/commands/seeds/sweep.py", "rate"): "the option of a run",
    ("cli/commands/seeds/contest.py", "rate"): "the option of a run",
    ("topo/show.py", "rate"): "the function that writes one",
}


def modules() -> Iterator[tuple[str, str]]:
    for place in SCANNED:
        for path in sorted((ROOT / place).rglob("*.py")) or [ROOT / place]:
            name = path.relative_to(ROOT).as_posix()
            if name != TABLE:
                yield name, path.read_text()


def strings(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def comments(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def spelled(name: str, text: str) -> list[str]:
    """The verbs that a module spells: speaking names anywhere in strings and comments, the others as whole strings."""
    held = list(strings(text))
    everything = "\n".join([*held, *comments(text)])
    found = {verb for verb in SPEAKING if verb in everything}
    found |= {verb for verb in set(VERBS) - SPEAKING if verb in held and (name, verb) not in OTHER_MEANINGS}
    return sorted(found)


@pytest.mark.smoke
def test_no_verb_is_spelled_outside_the_table() -> None:
    some = re.compile("|".join([*SPEAKING, *(f"[\"']{verb}[\"']" for verb in set(VERBS) - SPEAKING)]))
    assert {name: found for name, text in modules() if some.search(text) and (found := spelled(name, text))} == {}


@pytest.mark.parametrize("verb", VERBS)
def test_a_planted_verb_is_found(verb: str) -> None:
    assert spelled("topo/planted.py", f"def f(fault):\n    return fault.verb == {verb!r}\n") == [verb]


def test_every_exception_is_still_needed() -> None:
    places = {name for name, _ in OTHER_MEANINGS}
    held = {name: set(strings(text)) for name, text in modules() if name in places}
    assert [key for key in OTHER_MEANINGS if key[1] not in held.get(key[0], set())] == []
