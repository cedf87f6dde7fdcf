"""The benchmark of what evidence costs: its second copy of the sources really lacks what gathers it, and works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import evidence


@pytest.mark.slow
def test_the_copy_without_evidence_gathers_none_and_its_runtime_serves_packets(tmp_path: Path) -> None:
    folder = tmp_path / "without"
    evidence.copy(folder, evidence=False)
    for name, pieces in evidence.EVIDENCE.items():
        text = (folder / name).read_text()
        assert not [piece for piece in pieces if piece in text]
    words = [sys.executable, "-m", "cli", "run", "smoke", "--world", "simulated", "--seed", "1", "--plain"]
    environment = {**os.environ, "PYTHONPATH": str(folder), "MRCLAB_COMPILED": "off"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "runs").is_dir()


def test_the_time_of_orphans_counts() -> None:
    script = (
        "from benchmarks import evidence; import subprocess, sys\n"
        "evidence.adopt_orphans()\n"
        "work = 'import time\\nwhile time.process_time() < 0.5: pass'\n"
        "leave = f'import subprocess, sys; subprocess.Popen([sys.executable, \"-c\", {work!r}])'\n"
        "subprocess.call([sys.executable, '-c', leave])\n"
        "print(evidence.children_s())"
    )
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, cwd=evidence.ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert 0.5 <= float(done.stdout) < 5


def test_sources_that_have_changed_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(evidence.EVIDENCE, "lab", ("what nobody wrote",))
    with pytest.raises(ValueError, match="lab has 0 times, not once: 'what nobody wrote'"):
        evidence.copy(tmp_path / "without", evidence=False)


@pytest.mark.parametrize(("pairs", "said"), [("1", "--pairs 1: at least 2"), ("two", "invalid int value")])
def test_too_few_pairs_are_refused(
    pairs: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["evidence.py", "--pairs", pairs])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(SystemExit) as ended:
        evidence.main()
    assert said in str(ended.value) + capsys.readouterr().err
