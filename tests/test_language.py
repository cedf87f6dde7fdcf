"""Patterns of language that this project avoids: counted, and never more than they are now.

Each pattern has good uses, so none is forbidden. A change that removes hits lowers the number; raising a number needs
a reason.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.helpers.tracked import files_of

ROOT = Path(__file__).parents[1]
NOUNS = (
    "byte|command|cycle|file|host|line|link|message|packet|path|plane|port|process|queue|round|run|second|seed|step"
    "|switch"
)
PATTERNS = {
    "headless clause": r"(?:^|[.:;,(] )(?:What|Who|what|who) (?!is |are |if |does |do |the )\w+",
    "software as a person": r"\b(?:nobody|somebody|everybody|whoever)\b",
    "whatever": r"\bwhatever\b",
    "of its own": r"\bof (?:its|their|our) own\b|\bof ours\b",
    "noun a noun": rf"\b(?:{NOUNS})s? an? (?:{NOUNS})\b",
    "is wanted": r"\b(?:is|are) wanted\b",
    "trailing too": r", too\b",
    "stands for is": r"\bstands? (?:in|for|there|on)\b",
    "some for about": r"\bsome \d",
    "mend for fix": r"\bmend(?:s|ed|ing)?\b",
}
MOST = {
    "headless clause": 62, "software as a person": 22, "whatever": 13, "of its own": 26, "noun a noun": 11,
    "is wanted": 0, "trailing too": 7, "stands for is": 11, "some for about": 0, "mend for fix": 0,
}  # fmt: skip
"""Hits in everything that the project ships: pages, docstrings, comments, messages."""

API = ROOT / "docs" / "reference" / "api.md"
"""Docstrings once more."""


def hits(pattern: str, texts: Iterable[str]) -> int:
    return sum(len(re.findall(pattern, text, re.MULTILINE)) for text in texts)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("no clone but a copy: git knows no files of it")
    product = (path for path in files_of(ROOT) if path.relative_to(ROOT).parts[0] != "tests" and path != API)
    return [path.read_text() for path in product if path.suffix in (".py", ".md", ".js", ".c", ".h", ".p4")]


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_grows(name: str, texts: list[str]) -> None:
    found = hits(PATTERNS[name], texts)
    assert found <= MOST[name], (
        f"{found} hits of {name!r}, at most {MOST[name]}: reword the new ones ({PATTERNS[name]})"
    )


@pytest.mark.parametrize("name", PATTERNS)
def test_a_hit_is_counted(name: str) -> None:
    examples = {
        "headless clause": "What comes late is counted.",
        "software as a person": "nobody reads it",
        "whatever": "whatever it was",
        "of its own": "a file of its own",
        "noun a noun": "one command a link",
        "is wanted": "an integer is wanted",
        "trailing too": "the switch, too",
        "stands for is": "the number stands in a table",
        "some for about": "some 4 ms",
        "mend for fix": "how to mend it",
    }
    assert hits(PATTERNS[name], [examples[name], "plain text"]) == 1
