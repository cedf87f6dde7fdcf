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
    "headless clause": (
        r"(?:^|[.:;,(] )(?:What|Who|what|who) (?!is |are |if |does |do |the )\w+",
        62,
        "What comes late is counted.",
    ),
    "software as a person": (r"\b(?:nobody|somebody|everybody|whoever)\b", 22, "nobody reads it"),
    "whatever": (r"\bwhatever\b", 13, "whatever it was"),
    "of its own": (r"\bof (?:its|their|our) own\b|\bof ours\b", 26, "a file of its own"),
    "noun a noun": (rf"\b(?:{NOUNS})s? an? (?:{NOUNS})\b", 11, "one command a link"),
    "is wanted": (r"\b(?:is|are) wanted\b", 0, "an integer is wanted"),
    "trailing too": (r", too\b", 7, "the switch, too"),
    "stands for is": (r"\bstands? (?:in|for|there|on)\b", 11, "the number stands in a table"),
    "some for about": (r"\bsome \d", 0, "some 4 ms"),
    "mend for fix": (r"\bmend(?:s|ed|ing)?\b", 0, "how to mend it"),
}
"""Each with the most hits in everything that the project ships (pages, docstrings, comments, messages), and a hit."""

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
    pattern, most, _ = PATTERNS[name]
    found = hits(pattern, texts)
    assert found <= most, f"{found} hits of {name!r}, at most {most}: reword the new ones ({pattern})"


@pytest.mark.parametrize(("pattern", "most", "example"), PATTERNS.values(), ids=PATTERNS)
def test_a_hit_is_counted(pattern: str, most: int, example: str) -> None:
    assert hits(pattern, [example, "plain text"]) == 1
