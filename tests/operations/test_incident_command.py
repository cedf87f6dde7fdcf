"""`./lab incident` as its users have it: a process that keeps the secret, the commands, and the end."""

import contextlib
import io
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.main import main
from operations.incident.client import NoIncidentError, ask, start
from operations.incident.draw import draw
from operations.incident.live_incident import files
from tests.incidents.survey import leaks

SEED, LEVEL = 3000000019, 2
WORDS = (
    "status", "kinds", "inspect", "counters", "counters p0l0-p0s0 --watch 1", "capture p0l0-p0s0 --seconds 0.05",
    "prober", "prober --all", "paths h0 h2", "trace h0 h2", "log h1", "tables p0l0", "wait 1",
)  # fmt: skip


@dataclass(frozen=True)
class Done:
    """A command of `./lab incident`, carried out in this process."""

    returncode: int
    stdout: str
    stderr: str


def lab(runs: Path, *words: str) -> Done:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["incident", *words, "--runs", str(runs)])
    return Done(status, out.getvalue(), err.getvalue())


def keeper(folder: Path) -> int:
    """The process that keeps an incident: the one that has its journals open."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(link).startswith(str(folder)) for link in (place / "fd").iterdir()):
                return int(place.name)
        except OSError:
            continue
    raise AssertionError("no process keeps the incident")


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Path]:
    folder = start(tmp_path, SEED, LEVEL).path
    yield folder
    with contextlib.suppress(NoIncidentError):
        ask(folder, "end")


def test_no_command_file_or_process_gives_the_answer_away(begun: Path, tmp_path: Path) -> None:
    incident = draw(SEED, LEVEL)
    said = []
    for line in WORDS:
        for form in ((), ("--json",)):
            done = lab(tmp_path, *line.split(), *form)
            assert done.returncode == 0, done.stderr
            said.append(done.stdout + done.stderr if line != "kinds" else "")
    process = Path("/proc") / str(keeper(begun))
    said += [(process / name).read_bytes().decode(errors="replace") for name in ("cmdline", "environ", "comm")]
    said += [str(begun), *(os.readlink(link) for link in (process / "fd").iterdir()), *files(begun)]
    assert leaks(incident, said) == ()
    page = tmp_path / "page.html"
    assert lab(tmp_path, "view", "--export", str(page)).returncode == 0
    # The page's own program has words such as `hidden`, so only what a run adds to it is looked at.
    assert leaks(incident, [page.read_text().replace("hidden", "").replace("truth", "")]) == ()
    assert (begun / "lab.sock").stat().st_mode & 0o077 == 0
    assert incident.hidden  # there was something to say


def test_the_answer_ends_it_with_the_truth_a_page_and_a_replay(begun: Path, tmp_path: Path) -> None:
    (hidden,) = draw(SEED, LEVEL).hidden
    wrong = lab(tmp_path, "answer", hidden.component, "bad-luck")
    assert (wrong.returncode, "valid are dead-cable" in wrong.stderr) == (2, True)
    done = lab(tmp_path, "answer", hidden.component, hidden.kind, "--because", "it <b>shows</b>", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["verdict"], document["seed"]) == (0, "right", SEED)
    assert document["evidence"][0]["shows"]
    page = (begun / "incident.html").read_text()
    assert hidden.kind in page
    assert "it &lt;b&gt;shows" in page
    faults = [json.loads(line) for line in (begun / "journal" / "runner.jsonl").read_text().splitlines()]
    assert hidden.component in {line.get("target") for line in faults}
    assert (begun / "replay.html").stat().st_size > 10_000
    assert not (begun / "lab.sock").exists()
    over = lab(tmp_path, "status")
    assert (over.returncode, "no incident is under way" in over.stderr) == (2, True)


@pytest.mark.slow
def test_an_incident_whose_process_was_killed_says_so_and_makes_room(begun: Path, tmp_path: Path) -> None:
    os.kill(keeper(begun), signal.SIGKILL)
    said = lab(tmp_path, "inspect").stderr  # its socket may take one more connection
    assert "is over, or its process was killed" in said
    assert "no incident is under way" in lab(tmp_path, "inspect").stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--level", "9"), "--level must be between 1 and 5 (got 9)"),
        (("--seed", "-1"), "--seed must be between 0 and"),
        (("inspect",), "no incident is under way"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_made(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = lab(tmp_path, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_kinds_of_a_level_need_no_incident(tmp_path: Path) -> None:
    done = lab(tmp_path, "kinds", "--level", "3")
    assert done.returncode == 0, done.stderr
    assert "denied-path" in done.stdout
    assert "swapped-cables" not in done.stdout
    done = lab(tmp_path, "kinds", "--level", "6")
    assert done.returncode != 0
    assert "--level must be between 1 and 5 (got 6)" in done.stderr
    assert "no incident is under way" in lab(tmp_path, "kinds").stderr


def answered(folder: Path, number: int, points: float, net: float) -> None:
    run = folder / "incident" / f"2026010{number}-000000-{number}"
    run.mkdir(parents=True)
    (run / "options.json").write_text("{}")
    (run / "answer.json").write_text(json.dumps({"points": points, "net": net, "commands": 4, "lab_s": 10.0 * number}))


def test_the_score_of_a_group_is_the_sum_of_its_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answered(tmp_path / "anna", 1, 1.0, 1.0)
    answered(tmp_path / "anna", 2, 0.5, -0.5)
    answered(tmp_path / "ben", 1, 0.0, 0.0)
    assert main(["incident", "scores", str(tmp_path / "anna"), str(tmp_path / "ben")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "anna: 1.5 of 2 points, net score +0.5, 30 s of lab time, 8 commands",
        "ben: 0 of 1 points, net score +0, 10 s of lab time, 4 commands",
        "together: 1.5 of 3 points, net score +0.5, 40 s of lab time, 12 commands",
    ]


def test_a_person_without_an_answer_is_named(tmp_path: Path, refused) -> None:
    (tmp_path / "carl").mkdir()
    assert "carl must hold an incident that was answered" in refused("incident", "scores", str(tmp_path / "carl"))
