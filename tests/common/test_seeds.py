"""Seeds: where each draw begins, held to the streams of earlier versions, and that nothing draws from elsewhere."""

import ast
from pathlib import Path
from random import Random

import pytest

from common.seeds import Purpose, derive
from scenarios.scenario import Setting
from tests.helpers.tracked import python_files
from topo.planfile import load_plan

ROOT = Path(__file__).resolve().parents[2]
BIG = 7 + (1 << 32)
AS_GIVEN = {
    Purpose.TIMELINE, Purpose.SWITCHES, Purpose.VECTORS, Purpose.MODEL, Purpose.PICTURES, Purpose.BATCHES,
    Purpose.FIGURE, Purpose.SURVEY,
}  # fmt: skip
WITH_TEXT = {
    Purpose.HOST: "7 h3", Purpose.CONTENTS: "contents 7", Purpose.MIX: "mix 7", Purpose.COMPUTE: "compute 7 2",
    Purpose.HUNT: "hunt of 7", Purpose.HUNTED_CASE: "hunt 7", Purpose.HUNTED_TOPOLOGY: "hunted topology 7",
    Purpose.HUNTED_FAULT: "hunted fault 7", Purpose.PLACEMENT: "placement 7", Purpose.PATTERN: "permutation 7",
    Purpose.INCIDENT: "incident 7", Purpose.BACKGROUND: "background 7", Purpose.LESSON: "usids plan 7",
    Purpose.CHECK: "course 7 hunt", Purpose.PART: "part 7 leaf 3", Purpose.DEVICE: "device 7 hunt 2",
}  # fmt: skip
NAMES = {
    Purpose.HOST: "h3",
    Purpose.COMPUTE: 2,
    Purpose.LESSON: "usids plan",
    Purpose.CHECK: "hunt",
    Purpose.PART: "leaf 3",
    Purpose.DEVICE: "hunt 2",
}


@pytest.mark.parametrize("purpose", Purpose)
def test_each_purpose_begins_where_it_always_has(purpose: Purpose) -> None:
    """The starts are those of version 0.2.0: a seed in a paper or a bug report repeats its run."""
    if purpose is Purpose.ADDED_FAULT:
        assert derive(BIG, purpose) == 7
    elif purpose in AS_GIVEN:
        assert derive(BIG, purpose) == BIG
    else:
        assert derive(7, purpose, NAMES.get(purpose, "")) == WITH_TEXT[purpose]


def test_hosts_draw_other_numbers() -> None:
    assert len({Random(derive(7, Purpose.HOST, f"h{index}")).random() for index in range(100)}) == 100


def test_a_setting_hands_out_a_new_generator_at_each_call_and_says_so() -> None:
    setting = Setting(load_plan("tiny"), "mrc", 7, {})
    rng = setting.new_rng()
    assert rng.random() != rng.random()
    assert setting.new_rng().random() == setting.new_rng().random() == Random(7).random()
    assert not hasattr(setting, "rng"), "an attribute reads as one generator"


def generators(source: str) -> list[int]:
    """The lines that begin a generator from anything but `derive`."""
    found = []
    for call in (one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in ("Random", "default_rng") and "derive(" not in "".join(map(ast.unparse, call.args)):
            found.append(call.lineno)
    return found


@pytest.mark.smoke
def test_every_generator_of_the_product_begins_at_a_purpose() -> None:
    texts = {path: text for path in python_files() if "Random" in (text := path.read_text()) or "default_rng" in text}
    wrong = {str(path.relative_to(ROOT)): lines for path, text in texts.items() if (lines := generators(text))}
    assert wrong == {}
    planted = "a = random.Random(seed)\nb = np.random.default_rng(3)\nc = Random(derive(1, Purpose.MIX))\nd = Random()"
    assert generators(planted) == [1, 2, 4]
