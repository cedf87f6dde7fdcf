"""The rule matrix: whole, with a test for each rule, and a page that is fresh."""

from pathlib import Path
from typing import Any

import pytest

from conform import matrix, rule
from conform.rule import RuleError

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "conformance.md"
ROW: dict[str, Any] = {
    "id": "RSP-001", "rule": "A rule.", "source": "OCP MRC", "level": "must", "group": "basic",
    "tests": ["matrix:page"], "fails": "Nothing comes.",
}  # fmt: skip


def test_the_page_is_what_the_rules_say() -> None:
    assert PAGE.read_text() == matrix.page(rule.load()), "python -m conform.matrix > docs/reference/conformance.md"


def test_every_rule_names_tests_that_exist() -> None:
    for one in rule.load():
        assert one.functions(), one.id


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"level": "perhaps"}, "must be one of must, should, open (got 'perhaps')"),
        ({"group": "some"}, "must be one of basic, all, hunt (got 'some')"),
        ({"id": "R1"}, "must be like RSP-012 (got 'R1')"),
        ({"fails": ""}, "lacks fails"),
        ({"because": "x"}, "has because; valid: "),
    ],
)
def test_a_wrong_row_is_refused_by_name(change: dict[str, Any], said: str) -> None:
    with pytest.raises(RuleError, match=r"responder\.toml") as error:
        rule.read(ROW | change, "responder")
    assert said in str(error.value)


def test_a_test_that_does_not_exist_and_an_id_used_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="RSP-001: no test matrix:gone"):
        rule.read(ROW | {"tests": ["matrix:gone"]}, "responder").functions()
    row = '[[rule]]\nid="RSP-001"\nrule="A"\nsource="B"\nlevel="must"\ngroup="all"\ntests=["a:b"]\nfails="C"\n'
    (tmp_path / "responder.toml").write_text(row + row)
    with pytest.raises(RuleError, match="twice: RSP-001"):
        rule.load(folder=tmp_path)


def test_a_group_has_its_rules_and_all_has_those_of_basic() -> None:
    rules = [rule.read(ROW | {"id": f"RSP-00{n}", "group": group}, "responder") for n, group in enumerate(rule.GROUPS)]
    assert [one.group for one in rule.chosen(rules, "all")] == ["basic", "all"]
    assert [one.group for one in rule.chosen(rules, "basic")] == ["basic"]
    assert [one.group for one in rule.chosen(rules, "all", ["RSP-002"])] == ["hunt"]
    with pytest.raises(RuleError, match="must name rules"):
        rule.chosen(rules, "all", ["ABC"])
