"""Wrong inputs that an outside trial found: one or two clear lines, status 2 (or 3, unknown), never a trace-back."""

import json
import os
import re
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from cli.main import main

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60
WORDS = ("--world", "simulated", "--seed", "3", "--time", "0.2", "--plain")
SWEEP = ("sweep", "smoke", "--seeds", "1", "--time", "0.2", "--workers", "1", "--plain")
CORE = str(ROOT / "tests/switch/stf/steer.p4")
TRACE = ("switch", "trace", CORE, "--port", "1", "--packet", "00" * 64, "--entries", "{file}")
SHOW = ("controller", "show", "p0l0", "--plan", "tiny", "--planned", "--pipelines", "{runs}")
ONE_LINE = "add " + "x" * 3_000_000
Case = Callable[[Path], list[str]]


@contextmanager
def bounded(seconds: int) -> Iterator[None]:
    """TimeoutError when the block takes longer: a command that hangs is a failure, too."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"the command did not end within {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with one short run, and one sweep."""
    runs = tmp_path_factory.mktemp("made") / "runs"
    assert main(["run", "smoke", *WORDS, "--runs", str(runs)]) in (0, 3)
    assert main([*SWEEP, "--runs", str(runs)]) in (0, 1, 3)
    return runs


def run_of(runs: Path) -> Path:
    return (runs / "latest").resolve()


def options(text: str) -> Case:
    def damage(runs: Path) -> list[str]:
        (run_of(runs) / "options.json").write_text(text)
        return ["report", "--runs", str(runs)]

    return damage


def line(**fields: object) -> Case:
    """A run whose first host has one more line, of the sort that another release or a damaged disk may leave."""

    def damage(runs: Path) -> list[str]:
        with (run_of(runs) / "journal" / "h0.jsonl").open("a") as file:
            file.write(json.dumps({"t_ns": 10**15, "node": "h0", **fields}) + "\n")
        return ["report", "--runs", str(runs)]

    return damage


def raw(text: str, name: str = "journal/h0.jsonl", mode: str = "a") -> Case:
    def damage(runs: Path) -> list[str]:
        with (run_of(runs) / name).open(mode) as file:
            file.write(text)
        return ["report", "--runs", str(runs)]

    return damage


def store(make: Callable[[Path], object]) -> Case:
    def damage(runs: Path) -> list[str]:
        path = runs / "sweeps" / "rows.sqlite"
        path.unlink()
        make(path)
        return [*SWEEP, "--runs", str(runs)]

    return damage


def words(*given: str) -> Case:
    return lambda runs: [word.format(runs=runs) for word in given]


def written(name: str, text: str | bytes, *given: str) -> Case:
    def write(runs: Path) -> list[str]:
        (runs / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return [word.format(runs=runs, file=runs / name) for word in given]

    return write


def fifo(name: str, *given: str) -> Case:
    def make(runs: Path) -> list[str]:
        os.mkfifo(runs / name)
        return [word.format(runs=runs, file=runs / name) for word in given]

    return make


def pipelines(make: Callable[[Path], object]) -> Case:
    def put(runs: Path) -> list[str]:
        make(runs / "leaf.p4info.txtpb")
        (runs / "leaf.json").touch()
        return [word.format(runs=runs) for word in SHOW]

    return put


def lost(what: str) -> Case:
    def damage(runs: Path) -> list[str]:
        if what == "latest":
            (runs / "latest").unlink()
            (runs / "latest").symlink_to("gone")
        else:
            (run_of(runs) / what).unlink()
        return ["report", "--runs", str(runs)]

    return damage


def exported(case: Case) -> Case:
    def damage(runs: Path) -> list[str]:
        case(runs)
        return ["export", "cm", "latest", "--runs", str(runs)]

    return damage


COUNTER = line(kind="sample", ports=[], qps=[{"qp": 1, "peer": "h1", "acked_bytes": {}}])
MESSAGE = line(kind="message", state="sent", peer="h1", message=1, end_ns=5)
DEEP = "[" * 5000
TIME, WATCHED = "must be above 0 and at most 1000000 s", "must be between 0.2 and 1000000 s"
CASES: dict[str, tuple[Case, str]] = {
    "a port beyond all": (words("view", "--port", "99999", "tiny"), "--port"),
    "options without anything": (options("{}"), "options.json"),
    "options without a source": (options('{"source": null}'), "options.json"),
    "options cut off": (options('{"scenario": "smo'), "options.json"),
    "options that are empty": (options(""), "options.json"),
    "options that are a list": (options("[]"), "options.json"),
    "options with a number for hashes": (options('{"source": "smoke", "hashes": 5}'), "options.json"),
    "options nested too deep": (options('{"a": ' + DEEP), "options.json"),
    "a sample without its queue pair": (line(kind="sample", ports=[], qps=[{"peer": "h1"}]), ""),
    "a sample of empty rows": (line(kind="sample", qps=[{}], ports=[{}]), ""),
    "queue pairs that are a number": (line(kind="sample", ports=[], qps=5), ""),
    "a counter that is an object": (COUNTER, "{runs}"),
    "a message without its size, exported": (exported(MESSAGE), "{runs}"),
    "an EV without its number": (line(kind="ev", qp=1, peer="h1", old="good", new="lost"), ""),
    "a fault without its target": (line(kind="fault", verb="link-down", state="begin"), ""),
    "a line nested too deep": (raw(DEEP + "\n"), ""),
    "a line that is no UTF-8": (raw("\udcff\n".encode("utf-8", "surrogateescape").decode("latin-1")), ""),
    "a plan nested too deep": (raw("a = " + DEEP, "plan.toml", "w"), "plan.toml"),
    "a run without options": (lost("options.json"), "{runs}"),
    "a latest run that is gone": (lost("latest"), "latest"),
    "a store that is a folder": (store(Path.mkdir), "rows.sqlite"),
    "a store that is something else": (store(lambda path: path.write_text("no database " * 500)), "rows.sqlite"),
    "a store with another table": (
        store(lambda path: sqlite3.connect(path).execute("CREATE TABLE rows (other)").connection.commit()),
        "rows.sqlite",
    ),
    "an export onto a folder": (words("view", "latest", "--runs", "{runs}", "--export", "{runs}"), "{runs}"),
    "runs where nothing can be written": (words("run", "smoke", *WORDS, "--runs", "/proc/nope"), "/proc/nope"),
    "a picture where nothing can be written": (words("topo", "draw", "tiny", "-o", "/proc/x.svg"), "/proc/x.svg"),
    "addresses that are no UTF-8": (
        written("bad", b'{"p0l0": "\xff"}', "controller", "show", "p0l0", "--plan", "tiny", "--addresses", "{file}"),
        "bad",
    ),
    "a plan that is no UTF-8": (written("bad.toml", b"\xff\xfe", "topo", "show", "{file}"), "bad.toml"),
    "a plan that is a FIFO": (fifo("f.toml", "topo", "show", "{file}"), "must be a regular file (it is a FIFO)"),
    "a topology that is a FIFO": (fifo("f.topo", "topo", "show", "{file}"), "it is a FIFO"),
    "a workload that is a FIFO": (fifo("f.goal", "run", "{file}", "--plan", "tiny", *WORDS), "it is a FIFO"),
    "a change that is a FIFO": (fifo("f.toml", "rehearse", "{file}"), "it is a FIFO"),
    "a solution that is a FIFO": (fifo("f.py", "check", "5", "{file}"), "it is a FIFO"),
    "packet tests that are a FIFO": (fifo("f.stf", "switch", "stf", "{file}", "--program", CORE), "it is a FIFO"),
    "packet tests of one line": (written("f.stf", ONE_LINE, "switch", "stf", "{file}", "--program", CORE), "line 1: "),
    "entries without an end": (words(*TRACE[:-1], "/dev/zero"), "it is a device"),
    "entries of one line": (written("f.stf", ONE_LINE, *TRACE), "line 1: "),
    "pipelines that are FIFOs": (pipelines(os.mkfifo), "leaf.p4info.txtpb must be a regular file (it is a FIFO)"),
    "a pipeline without an end": (
        pipelines(lambda path: path.symlink_to("/dev/zero")),
        "must be a regular file (it is a device)",
    ),
    "a scenario that is a FIFO": (fifo("f.py", "run", "{file}", *WORDS), "this must be a Python file"),
    "a topology of one number": (
        written("f.topo", "Nodes " + "1" * 50_000, "topo", "show", "{file}"),
        "Nodes must be a whole number",
    ),
    "a plan that is missing": (words("up", "no/such.toml"), "plan file no/such.toml: no such file"),
    "a plan of brackets": (written("deep.toml", "a = " + DEEP, "topo", "show", "{file}"), "deep.toml"),
    "an unknown option of compile": (words("compile", "--bogus"), "--bogus"),
    "a cluster of nonsense": (words("sweep", "smoke", "--cluster", "nonsense://x"), "--cluster"),
    "traffic without an end": (
        words("traffic", "write_bw", "h0", "h1", "--seconds", "inf"),
        f"--seconds {TIME} (got inf)",
    ),
    "counters too often": (words("counters", "--watch", "0.1"), f"--watch {WATCHED} (got 0.1)"),
    "the load of a plan": (words("graph", "tiny", "--load", "1"), "--load needs a running lab"),
    "a capture of no packet": (words("capture", "h0-p0l0", "--count", "0"), "--count must be between 1 and 2147483647"),
    "a run until the end of time": (words("run", "smoke", *WORDS, "--until", "inf"), f"--until {TIME} (got inf)"),
    "a packet log without an end": (
        words("run", "smoke", *WORDS, "--record-packets", "0..inf"),
        "--record-packets must be START..END in seconds of the run, such as 5..5.5, END at most 1000000 (got '0..inf')",
    ),
    "a hunt without an end": (words("hunt", "--minutes", "inf"), "above 0 and at most 1000000000 (got inf)"),
    "a fault of a switch that is none": (
        words("run", "smoke", *WORDS, "--fault", "link-down p0l0-p9s0 @2"),
        "(link-down p0l0-p9s0 in phase faults, 1.2 s into the run)",
    ),
    "a script of the prompt that is missing": (
        words("shell", "/proc/nope"),
        "./lab shell: script: must be a file of commands (got /proc/nope: no such file or directory)",
    ),
    "a capture into a missing folder": (
        words("capture", "h0-p0l0", "--write", "/proc/nope/x.pcap"),
        "--write must be in a folder that exists (got /proc/nope/x.pcap)",
    ),
    "a program that is missing": (words("switch", "compile", "/proc/nope.p4"), "(got /proc/nope.p4: no such file"),
    "switches into a file": (
        written("file", "", "export", "frr", "tiny", "-o", "{file}"),
        "-o must be a folder with frr (got the file {runs}/file)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_input_ends_in_one_or_two_clear_lines(name: str, made: Path, tmp_path, capsys) -> None:
    case, named = CASES[name]
    runs = tmp_path / "runs"
    shutil.copytree(made, runs, symlinks=True)
    given = case(runs)
    with bounded(LIMIT_S):
        try:
            status = main(given)
        except SystemExit as error:  # argparse
            status = int(error.code or 0)
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    if status == 3:
        assert "unknown" in out, "an unknown verdict says so"
        return
    assert status == 2, (status, out, err)
    told = [text for text in err.splitlines() if text and not text.startswith("usage:") and not text.startswith(" ")]
    assert 1 <= len(told) <= 2, err
    assert named.format(runs=runs) in err, err
    assert len(err) < 10_000
    assert not re.search(r"Errno|recursion|codec can't", err), err


def test_the_cases_cover_what_the_debugging_variable_shows(made: Path, monkeypatch, refused) -> None:
    """MRCLAB_DEBUG=1 shows where a complaint comes from: so the lines above come from exceptions that were caught."""
    monkeypatch.setitem(os.environ, "MRCLAB_DEBUG", "1")
    assert "Traceback" in refused("run", "smoke", "--seed", "-1")


def test_a_list_of_machines_that_is_a_fifo_is_refused_before_there_is_a_run(tmp_path, monkeypatch, capsys) -> None:
    os.mkfifo(tmp_path / "machines")
    monkeypatch.setenv("HYDRA_HOST_FILE", str(tmp_path / "machines"))
    with bounded(LIMIT_S):
        assert main(["run", "smoke", *WORDS, "--processes", "2", "--runs", str(tmp_path / "runs")]) == 2
    assert "machines must be a regular file (it is a FIFO)" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
