"""A sentence of the help stands in one place: one that stands twice is soon corrected once."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.helpers.rooms import room_of
from tests.helpers.tracked import files_of

ROOT = Path(__file__).parents[2]
SENTENCE = 16  # characters: shorter ones ("a host") may be said again
KEYWORDS = ("help", "description", "summary")
OTHERS = ("tests", "benchmarks", "docs", "mrclab", "endpoint", "switch")  # commands of their own, not of `./lab`


def sentences(path: Path) -> list[str]:
    """The constants that a file hands to argparse as help or description."""
    found = []
    text = path.read_text()
    for node in ast.walk(ast.parse(text if any(word in text for word in (*KEYWORDS, "CommandEntry")) else "")):
        if isinstance(node, ast.Call):
            if getattr(node.func, "id", "") == "CommandEntry" and isinstance(node.args[0], ast.Constant):
                found.append(str(node.args[0].value))
            for keyword in node.keywords:
                if keyword.arg in KEYWORDS and isinstance(keyword.value, ast.Constant):
                    found.append(str(keyword.value.value))
    return found


@pytest.mark.smoke
def test_no_sentence_of_the_help_stands_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in files_of(ROOT):
        if path.suffix == ".py" and room_of(path.relative_to(ROOT)) not in OTHERS:
            for sentence in sentences(path):
                if len(sentence) >= SENTENCE:
                    places[sentence].append(str(path.relative_to(ROOT)))
    assert len(places) > 100
    assert {sentence: where for sentence, where in places.items() if len(where) > 1} == {}
