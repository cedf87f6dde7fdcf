"""The benchmark that counts verdicts under noise: it goes on where it ended, and its table says what is wrong."""

from pathlib import Path

import pytest

from benchmarks import noise
from benchmarks.noise import Case, Outcome


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    seen: list[Case] = []

    def run(case: Case, folder: Path, extra: list[str]) -> Outcome:
        seen.append(case)
        return Outcome("false" if case.transport != "mrc" else "true", commit="abc")

    monkeypatch.setattr(noise, "run", run)
    return seen


def test_a_run_that_has_a_verdict_is_not_repeated(ran: list[Case], tmp_path: Path) -> None:
    words = ["--results", str(tmp_path / "noise.jsonl"), "--folder", str(tmp_path), "--runs", "2", "--noise", "mild"]
    words += ["--scenario", "spray"]
    assert noise.main([*words, "--at-most", "3"]) == 0
    assert ran == [
        Case("spray", "mrc", "mild", 1),
        Case("spray", "mrc-oblivious", "mild", 1),
        Case("spray", "mrc", "mild", 2),
    ]
    assert noise.main(words) == 0
    assert ran[3:] == [Case("spray", "mrc-oblivious", "mild", 2)]
    assert noise.main(words) == 0
    assert len(ran) == 4


@pytest.mark.parametrize(
    ("transport", "kind", "verdict", "good"),
    [
        ("mrc", "none", "true", True),
        ("mrc", "none", "unknown", False),
        ("mrc", "freeze", "unknown", True),
        ("mrc", "freeze", "false", False),
        ("mrc", "both", "failed", False),
        ("roce", "mild", "false", True),
        ("roce", "mild", "unknown", True),
        ("roce", "loops", "true", False),
        ("mrc", "core", "unknown", True),
    ],
)
def test_the_table_says_which_rows_are_wrong(
    transport: str, kind: str, verdict: str, good: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "noise.jsonl"
    noise.keep(path, Case("link-flap", transport, kind, 1), Outcome(verdict))
    assert noise.main(["--results", str(path), "--table"]) == (0 if good else 1)
    counts = " | ".join("1" if word == verdict else "0" for word in ("true", "unknown", "false", "failed"))
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"| link-flap | {transport} | {kind} | {counts} | {'' if good else 'wrong'} |"
