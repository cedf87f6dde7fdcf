"""Incidents on real links: a sealed lab, which only the incident's own tools look at."""

import contextlib
import io
import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from cli.main import main
from operations.incident import solving
from operations.incident.client import NoIncidentError, ask, start
from operations.incident.draw import CALLED_S
from operations.incident.kind import KINDS
from operations.incident.live_incident import files
from operations.incident.score import components
from operations.incident.session import IncidentSession
from operations.incident.words import parse
from running.directory import RunDirectory
from tests.helpers.incidents import drawn_with
from tests.helpers.waiting import eventually, heeding_interrupts
from tests.incidents.survey import leaks
from topo.emulation import labname
from topo.emulation.lab import down

pytestmark = [pytest.mark.root, pytest.mark.slow]

OTHERS = (
    "fault", "fault link-down p0l0-p0s0", "undo all", "counters", "inspect", "trace h0 h2", "graph",
    "capture p0l0-p0s0 --count 1", "exec h0 -- true", "traffic list", "controller verify",
)  # fmt: skip
"""Commands that would show or change the faults of an ordinary lab."""


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MRCLAB_NAME", "incident-test")
    yield
    down()


def lab(*words: str) -> tuple[int, str]:
    """The status and output of a command, carried out in this process."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = main(list(words))
    return status, out.getvalue()


@pytest.mark.parametrize("kind", ["nic-port-down", "rebooting-switch", "late-host", "swapped-cables"])
def test_the_recorded_path_of_a_kind_shows_it_on_real_links(kind: str, tmp_path) -> None:
    """Those that real links do in another way than virtual time; `python -m tests.incidents` tries them all."""
    incident = drawn_with(kind, KINDS[kind].level)
    hidden = next(one for one in incident.hidden if one.kind == kind)
    opened = IncidentSession(incident, RunDirectory.create(tmp_path, "incident", 1), CALLED_S, "emulated")
    try:
        lines = solving.commands(incident.plan, hidden)
        found = solving.shown_by(
            incident.plan, incident.tickets, lambda line: opened.do(*parse(line), line), lines, virtual_time=False
        )
        assert kind in {one.kind for one in found if one.component in components(hidden)}, (hidden, found)
    finally:
        opened.close()


def test_a_sealed_lab_gives_nothing_away_and_ends_with_the_answer(tmp_path) -> None:
    incident = drawn_with("wrong-entry", 3, first=3_000_000_000)
    folder = start(tmp_path, incident.seed, 3, "emulated").path
    said = []
    try:
        assert "what is wrong is hidden" in lab("status")[1]
        status, text = lab("status", "--format", "json")
        assert (status, json.loads(text)["faults"], json.loads(text)["sealed"]) == (0, [], True)
        for line in OTHERS:
            status, text = lab(*line.split())
            assert (status, "its faults are hidden" in text) == (2, True), (line, text)
        for line in (
            "inspect",
            "counters",
            "prober --all",
            "tables p0l0",
            "capture p0l0-p0s0",
            "paths h0 h2",
            "log h0",
        ):
            for form in ((), ("--json",)):
                status, text = lab("incident", *line.split(), *form, "--runs", str(tmp_path))
                assert status == 0, text
                said.append(text)
        words = ("exec", "--runs", str(tmp_path), "p0l0", "--", "ip", "-d", "link")
        command = [sys.executable, "-m", "cli", "incident", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "p0l0-eth1" in done.stdout, done.stderr
        shown = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        ours = [line for line in shown.splitlines() if str(folder) in line or "operations.incident" in line]
        assert ours
        said += [done.stdout, *ours, *files(folder), *files(labname.chosen().root)]
        assert leaks(incident, said) == ()
    finally:
        document = ask(folder, "end")
    assert [one["kind"] for one in document["truth"]] == [one.kind for one in incident.hidden]
    assert document["evidence"][0]["shows"]
    assert not labname.chosen().root.exists()
    with pytest.raises(NoIncidentError):
        ask(folder, "status")


def test_ctrl_c_while_the_lab_is_built_leaves_nothing_of_it(tmp_path) -> None:
    command = [sys.executable, "-m", "cli", "incident", "--world", "emulated", "--runs", str(tmp_path)]
    starter = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heeding_interrupts)
    root = labname.chosen().root
    try:
        eventually(lambda: bool(list(root.glob("*"))), "a lab that is being built", 60)
        starter.send_signal(signal.SIGINT)
        assert starter.communicate(timeout=60)[1].endswith("mrclab: interrupted\n")
    finally:
        starter.kill()
        starter.wait()
    assert not root.exists()
    assert "incident" not in subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout


def test_a_lab_that_is_taken_down_ends_the_incident_in_words(tmp_path) -> None:
    start(tmp_path, 5, 1, "emulated")
    runs = ("--runs", str(tmp_path))
    assert lab("down")[0] == 0
    status, text = lab("incident", "inspect", *runs)
    assert (status, "was taken down" in text) == (2, True)
    status, text = lab("incident", "end", *runs)
    assert (status, "given up" in text) == (3, True)
