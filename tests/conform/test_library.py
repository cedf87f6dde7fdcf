"""Libraries under test: the lab's keeps the rules, and planted faults are named by the rules that they break."""

import argparse
import os
import shutil
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import rig
from conform import bundle
from conform.library import cases, command
from conform.library.cases import Library, LibraryError, judged
from conform.result import CHOICE, FAIL, PASS, UNREACHED, Result
from conform.rule import load
from running import sdk
from tests.libmrc.compiled import REQUIREMENTS

pytestmark = REQUIREMENTS
RULES = load(["library"])
CASES = list(dict.fromkeys(test.partition(":")[2] for rule in RULES for test in rule.tests))
SEEDS = int(os.environ.get("MRCLAB_CONFORM_SEEDS", "1"))
PATIENCE_S = 60
MUTANTS = {
    "a refused request gives -1": (
        "post.c", "return lost ? lost : error;", "return lost || error ? -1 : 0;", "refused",
        {"LIB-024", "LIB-025"},
    ),
    "a list is posted whole or not at all": (
        "post.c", "pair_of(verbs), wr, bad, false)", "pair_of(verbs), wr, bad, true)", "refused", {"LIB-025"},
    ),
    "any number of inline bytes is taken": (
        "post.c", "is_inline(wr) && length_of(wr) > qp->made.cap.max_inline_data", "0", "inlined", {"LIB-023"},
    ),
    "a queue is armed for all completions": (
        "cq.c", ".solicited = !!solicited_only", ".solicited = 0 * solicited_only", "channels", {"LIB-050"},
    ),
    "a protection domain in use is freed": ("memory.c", "used |=", "used &=", "destroyed", {"LIB-045"}),
    "the length of a receive is missing": ("cq.c", "wc->byte_len = row->byte_len;", "", "immediates", {"LIB-017"}),
    "a send queue is never full": (
        "post.c", "qp->sends + ahead >= qp->made.cap.max_send_wr", "0", "full", {"LIB-026", "LIB-027"},
    ),
    "a send in INIT is taken": (
        "post.c", "!= IBV_QPS_ERR)", "!= IBV_QPS_ERR && !qp->verbs.state)", "states", {"LIB-030", "LIB-031"},
    ),
}  # fmt: skip


def results(
    library: Path, folder: Path, names: list[str], seeds: int = 1, patience_s: int = PATIENCE_S
) -> list[Result]:
    """What the rules of these cases come to, each case with two NICs of its own."""
    outputs: dict[str, list[str]] = {case: [] for case in names}
    one = Library(library, [], folder, patience_s)
    for case in names:
        for seed in range(seeds):
            with rig() as made:
                one.devices = [f"mrc_{name}" for name in made.names]
                outputs[case].append(one.output(case, seed))
    return [judged(rule, outputs) for rule in RULES if all(test.partition(":")[2] in names for test in rule.tests)]


def failed(told: list[Result]) -> dict[str, str]:
    return {one.rule: one.text for one in told if one.outcome == FAIL}


@pytest.mark.parametrize("case", CASES)
def test_the_labs_library_breaks_no_rule(case: str, tmp_path: Path) -> None:
    told = results(sdk.library() / sdk.LIBRARY, tmp_path, [case], SEEDS)
    assert [one.line() for one in told if one.outcome not in (PASS, CHOICE)] == []


def planted(folder: Path, file: str, before: str, after: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The library with a change in one file of its sources."""
    source = Path(shutil.copytree(sdk.SOURCE, folder / "source"))
    text = (source / file).read_text()
    assert before in text
    (source / file).write_text(text.replace(before, after))
    monkeypatch.setattr(sdk, "SOURCE", source)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    return sdk.library() / sdk.LIBRARY


@pytest.mark.parametrize("fault", MUTANTS)
def test_a_planted_fault_is_named_by_the_rules_that_it_breaks(fault: str, tmp_path: Path, monkeypatch) -> None:
    file, before, after, case, expected = MUTANTS[fault]
    told = failed(results(planted(tmp_path, file, before, after, monkeypatch), tmp_path, [case]))
    assert set(told) == expected, told


@pytest.mark.parametrize(
    ("body", "said"), [("*(volatile int *)0 = 1;", "ended by signal 11"), ("pause();", "did not end within 3 s")]
)
def test_a_library_that_crashes_or_hangs_fails_by_name(body: str, said: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(cases, "CASES_S", 3)
    before = "int mrc_poll_cq(struct mrc_cq *cq, int count, struct ibv_wc *wc)\n{"
    library = planted(tmp_path, "mrc.c", before, before + body, monkeypatch)
    told = results(library, tmp_path, ["completions"], patience_s=1)
    assert {one.outcome for one in told} == {FAIL}
    assert said in told[0].text


def test_a_case_that_cannot_begin_reaches_no_rule(tmp_path: Path) -> None:
    library = Library(sdk.library() / sdk.LIBRARY, ["mrc_none", "mrc_none"], tmp_path, 1)
    told = [judged(rule, {case: [library.output(case, 1)] for case in CASES}) for rule in RULES]
    assert {one.outcome for one in told} == {UNREACHED}
    assert "the case stopped, because this failed: end->verbs" in told[0].text


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "libx.so").write_text("x")
    with pytest.raises(LibraryError, match="no program can be linked with"):
        Library(tmp_path / "libx.so", ["a", "b"], tmp_path, 1)


def test_a_bundle_of_the_command_is_judged_again_from_what_cases_said(tmp_path: Path, capsys) -> None:
    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers())
    with rig() as made:
        names = ",".join(f"mrc_{name}" for name in made.names)
        words = ["library", "--lib", str(sdk.library() / sdk.LIBRARY), "--devices", names, "--only", "LIB-00"]
        options = parser.parse_args([*words, "--patience", "60", "--output", str(tmp_path / "bundle")])
        assert options.run(options) == 0
    assert "9 rules: 9 pass" in capsys.readouterr().out
    wrong, again = bundle.verify(tmp_path / "bundle")
    assert wrong == []
    assert len(again) == 9
