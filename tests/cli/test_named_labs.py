"""Labs of different names through the command line: every word means the named lab, and two runs go on side by side."""

import importlib.util
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli import main as cli, root
from cli.command_table import commands, place
from tests.helpers.living_lab import LIMIT_S, MRCLAB, mrclab
from topo.emulation import labname

NAMES = ("test-one", "test-two")  # whoever else uses this machine calls theirs otherwise
LAB_IN_SOURCE = re.compile(r"Lab\.attach|chosen_plan|running_plan|topo\.emulation\.cli|labname\.add_option")


def touches_a_lab(word: str) -> bool:
    """By the module that adds the word; `doctor` is with those that do, and looks at the machine alone."""
    found = importlib.util.find_spec(place(word)[0])
    assert found is not None
    assert found.origin
    source = Path(found.origin).read_text()
    return word != "doctor" and LAB_IN_SOURCE.search(source) is not None


@pytest.mark.parametrize("word", sorted(filter(touches_a_lab, commands())))
def test_every_word_that_touches_a_lab_takes_a_name(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert {"run", "up", "down", "status", "fault", "trace", "view", "topo"} <= set(filter(touches_a_lab, commands()))
    with pytest.raises(SystemExit):
        cli.main([word, "--name", "Not a Name"])
    assert "--name: 'Not a Name' is no lab's name: a lab's name has 1 to 16" in capsys.readouterr().err


def test_the_name_may_come_before_the_word_and_is_kept_under_sudo(monkeypatch, capsys) -> None:
    monkeypatch.setenv(labname.VARIABLE, "default")
    assert cli.main(["--name", "nobodys", "status"]) == 1
    assert "no lab of the name nobodys is running" in capsys.readouterr().out
    monkeypatch.setenv(labname.VARIABLE, "blue")
    assert root.with_name(["fault", "link-down", "p0l0-p0s0"]) == ["fault", "--name", "blue", "link-down", "p0l0-p0s0"]
    assert root.with_name(["--name", "blue", "up"]) == ["--name", "blue", "up"]
    monkeypatch.delenv(labname.VARIABLE)
    assert root.with_name(["up", "tiny"]) == ["up", "tiny"]


@pytest.fixture
def two_labs() -> Iterator[None]:
    try:
        for name in NAMES:
            mrclab("up", "tiny", "--name", name)
        yield
    finally:
        for name in NAMES:
            mrclab("down", "--name", name)


class TestOnRealLinks:
    pytestmark = pytest.mark.root

    def test_words_of_the_living_lab_mean_the_named_one(self, two_labs: None, tmp_path: Path) -> None:
        one, two = NAMES
        mrclab("fault", "link-down", "p0l0-p0s0", "--name", one)
        assert "LOST" in mrclab("trace", "h0", "h3", "--name", one, status=1)
        assert "h3 receives" in mrclab("trace", "h0", "h3", "--name", two)
        assert "DEAD" in mrclab("paths", "h0", "h3", "--name", one)
        assert "DEAD" not in mrclab("paths", "h0", "h3", "--name", two)
        assert "link-down" in mrclab("graph", "--name", one)
        assert "link-down" not in mrclab("graph", "--name", two)
        assert mrclab("fault", "--name", two) == "no fault in force\n"
        spaces = [one["namespace"] for one in json.loads(mrclab("inspect", "--name", two, "--format", "json"))["nodes"]]
        assert len(spaces) == 12
        assert all(space.startswith(f"/run/netns/{two}.") for space in spaces)
        assert f"{two}.h0" in mrclab("exec", "--name", two, "h0", "--", "ip", "netns", "identify")
        assert "bytes verified" in mrclab("traffic", "write_bw", "h0", "h3", "messages=20", "--name", two)
        assert "TX_OK" in mrclab("counters", "p0l0", "--name", two)
        assert "452 entries" in mrclab("controller", "verify", "--name", two)
        mrclab("undo", "all", "--name", one)
        assert "452 entries" in mrclab("controller", "verify", "--name", one)

    def test_programs_over_uverbs_run_in_two_labs_at_once(self, two_labs: None, tmp_path: Path) -> None:
        def job(name: str, rank: int) -> list[str]:
            ranks = ["--rank", str(rank), "--ranks", "h0,h3", "--meet", str(tmp_path / name), "--steps", "2"]
            return ["exec", "--name", name, f"h{3 * rank}", "--", "python", "-m", "mrclab.training", *ranks]

        for name in NAMES:
            mrclab("traffic", "agents", "--name", name)
        others = [subprocess.Popen([*MRCLAB, *job(name, 1)]) for name in NAMES]
        for name in NAMES:
            assert "step    1" in mrclab(*job(name, 0))
        assert [other.wait(LIMIT_S) for other in others] == [0, 0]
