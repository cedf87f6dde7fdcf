"""`./lab run SCENARIO --program COMMAND`: a user's command as a scenario's traffic, judged by how it ends."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cli import main as cli
from common.journal import Journal
from judging import commands
from judging.reports import tables
from judging.run import Run
from running.directory import RunDirectory
from running.programs import Programs, filled
from scenarios import job, library
from scenarios.scenario import Command, Program, Setting, Workload
from scenarios.user_traffic.command import with_command
from topo.planfile import load_plan

SECOND = 1_000_000_000
TRAINS = "python -m mrclab.training --rank {rank} --ranks {ranks} --meet {folder} --steps 80 --hidden 32 --samples 64"


# --- refusals -------------------------------------------------------------------------------------------------------


def test_a_workload_file_has_no_traffic_to_take_the_place_of(refused) -> None:
    words = ["run", "schedules/examples/barrier.cm", "--world", "simulated", "--plan", "tiny", "--program", "true"]
    assert "takes the place of a scenario's traffic" in refused(*words)


# --- processes ------------------------------------------------------------------------------------------------------


class FakeWorld:
    """A world whose processes end as it is told, and whose clock moves when somebody waits."""

    def __init__(self, endings: dict[str, tuple[int | None, int]], listens_ns: int = 0) -> None:
        self.clients = dict.fromkeys(endings)
        self.spawned: list[tuple[str, list[str], int]] = []
        self.processes: dict[str, Any] = {}
        self._endings, self._listens_ns, self._now_ns = endings, listens_ns, 0

    def now_ns(self) -> int:
        return self._now_ns

    def wait_until(self, t_ns: int) -> None:
        self._now_ns = max(self._now_ns, t_ns)

    def reach(self, host: str, other: str, *, front_end: bool) -> str:
        return f"{other}-from-{host}"

    def listens(self, host: str) -> bool:
        return self._now_ns >= self._listens_ns

    def spawn(self, host: str, argv: list[str], log: str) -> Any:
        self.spawned.append((host, argv, self._now_ns))
        ends_ns, status = self._endings[host]
        world = self

        class Process:
            terminated = False

            def poll(self) -> int | None:
                return status if ends_ns is not None and world.now_ns() >= ends_ns else None

            def terminate(self) -> None:
                self.terminated = True

        self.processes[host] = Process()
        return self.processes[host]


def command(world: FakeWorld, tmp_path: Path, *argv: str) -> tuple[Programs, RunDirectory]:
    directory = RunDirectory.create(tmp_path, "own", 1)
    program = Program("program", argv, Workload("all_reduce"), tuple(world.clients), command=True)
    journal = Journal(directory.journal("runner"), "runner", world.now_ns)
    made: Any = world
    return Programs(program, made, directory, journal), directory


def words_of(world: FakeWorld, host: str) -> list[str]:
    """What a host's process was started with, behind `env` and the settings."""
    (argv,) = [argv for name, argv, _ in world.spawned if name == host]
    assert argv[0] == "env"
    return argv[next(at for at, word in enumerate(argv[1:], 1) if "=" not in word) :]


def test_rank_0_is_the_server_and_the_others_get_its_address_once_it_listens(tmp_path: Path) -> None:
    world = FakeWorld({"h0": (None, 0), "h3": (None, 0), "h1": (None, 0)}, listens_ns=2 * SECOND)
    programs, _ = command(world, tmp_path, "true", "-d", "mrc_{host}", "{print}", "h1", "{server}")
    programs.start()
    assert words_of(world, "h0") == ["true", "-d", "mrc_h0", "{print}", "h1-from-h0"]
    assert words_of(world, "h3") == ["true", "-d", "mrc_h3", "{print}", "h1-from-h3", "h0-from-h3"]
    times_ns = [at_ns for _, _, at_ns in world.spawned]
    assert times_ns[0] == 0
    assert min(times_ns[1:]) >= 2 * SECOND
    assert not programs.over()


def test_a_server_that_never_listens_is_told_and_not_waited_for(tmp_path: Path) -> None:
    world = FakeWorld({"h0": (None, 0), "h3": (None, 0)}, listens_ns=3600 * SECOND)
    programs, directory = command(world, tmp_path, "true", "{server}")
    programs.start()
    assert len(world.spawned) == 2
    assert "listens on no TCP port" in directory.journal("runner").read_text()


def test_when_one_process_fails_the_others_are_ended_and_the_first_is_blamed(tmp_path: Path) -> None:
    world = FakeWorld({"h0": (None, 0), "h3": (SECOND, -11), "h1": (None, 0)})
    programs, directory = command(world, tmp_path, "true")
    programs.start()
    directory.log("h3-program").parent.mkdir()
    directory.log("h3-program").write_text("a last word\n")
    while not programs.over():
        world.wait_until(world.now_ns() + SECOND // 10)
    assert 6 * SECOND < world.now_ns() < 8 * SECOND
    assert world.processes["h0"].terminated
    assert world.processes["h1"].terminated
    run = Run.open(directory.path)
    found = {one.host: one for one in commands.processes(run)}
    assert found["h3"].output == "a last word\n"
    assert commands.ending(found["h3"]) == "killed by signal 11"
    finding = commands.ended_well()(run)
    assert finding.holds is False
    assert finding.reason == "h3: killed by signal 11; 3 of 3 failed"


def test_a_process_that_goes_on_for_ever_is_ended_after_the_run(tmp_path: Path) -> None:
    world = FakeWorld({"h0": (SECOND, 0), "h3": (None, 0)})
    programs, directory = command(world, tmp_path, "true")
    programs.start()
    programs.end(30.0)
    assert world.processes["h3"].terminated
    finding = commands.ended_well()(Run.open(directory.path))
    assert finding.holds is False
    assert finding.reason == "h3: was still running 30 s after the last phase; 1 of 2 failed"


def test_programs_of_a_scenario_get_their_words_and_failed_or_late_ones_are_journalled(tmp_path: Path) -> None:
    world: Any = FakeWorld({"h0": (0, 0), "h1": (0, 1), "h2": (None, 0)})
    directory = RunDirectory.create(tmp_path, "job", 1)
    setting = Setting(load_plan("lab"), "mrc", 3, {phase.name: phase.seconds for phase in job.SCENARIO.phases})
    programs = Programs(job.programs(setting)[0], world, directory, Journal(directory.journal("runner"), "runner"))
    programs.start()
    words = world.spawned[1][1]
    assert words[words.index("--rank") :][:4] == ["--rank", "1", "--ranks", "h0,h1,h2"]
    assert str(directory.journal("clean-h1")) in words
    programs.end(0.0)
    text = directory.journal("runner").read_text()
    assert "clean on h1 ended with status 1" in text
    assert "clean on h2 was still running" in text
    assert "h0" not in text
    assert world.processes["h2"].terminated


# --- judging --------------------------------------------------------------------------------------------------------


def run_with(tmp_path: Path, stop_ns: int, fault_ns: int | None) -> Run:
    directory = RunDirectory.create(tmp_path, "own", 1)
    journal = Journal(directory.journal("runner"), "runner", lambda: 0)
    journal.write("phase", t_ns=0, name="faults", state="start")
    journal.write("command", t_ns=0, state="start", host="h0", rank=0, words="true")
    if fault_ns is not None:
        journal.write("fault", t_ns=fault_ns, verb="link-down", target="p0l0-p0s0", state="begin", arguments={})
    journal.write("command", t_ns=stop_ns, state="stop", host="h0", rank=0, status=0, cause="", output="")
    journal.close()
    return Run.open(directory.path)


@pytest.mark.parametrize(
    ("fault_ns", "holds", "reason"),
    [
        (5, True, "1 fault came while the program ran"),
        (15, None, "the program was over after 0.0 s, before any fault; give it more to do"),
        (None, None, "the program was over after 0.0 s, before any fault; give it more to do"),
    ],
)
def test_a_program_shows_something_of_faults_that_came_while_it_ran(fault_ns, holds, reason, tmp_path) -> None:
    finding = commands.under_faults()(run_with(tmp_path, 10, fault_ns))
    assert (finding.holds, finding.reason) == (holds, reason)


@pytest.mark.parametrize(
    ("failed_ns", "cause", "status", "expected"),
    [
        (3, "no answer", 1, (3, "queue pair 5 of h0 to h1: no answer", "before any fault")),
        (6, "no answer", 1, (6, "queue pair 5 of h0 to h1: no answer", "under link-down p0l0-p0s0 (since 0.00 s)")),
        (9, "no answer", 1, (9, "queue pair 5 of h0 to h1: no answer", "0.00 s after link-down p0l0-p0s0 was over")),
        (6, "modified to ERROR", 1, (10, "h0: status 1", "0.00 s after link-down p0l0-p0s0 was over")),
        (11, "no answer", -11, (10, "h0: killed by signal 11", "0.00 s after link-down p0l0-p0s0 was over")),
        (6, "no answer", 0, None),
    ],
)
def test_of_a_failed_program_the_first_cause_is_told_with_the_faults_at_that_time(
    failed_ns: int, cause: str, status: int, expected: tuple[int, str, str] | None, tmp_path: Path
) -> None:
    directory = RunDirectory.create(tmp_path, "own", 1)
    journal = Journal(directory.journal("runner"), "runner", lambda: 0)
    journal.write("phase", t_ns=0, name="faults", state="start")
    journal.write("command", t_ns=0, state="start", host="h0", rank=0, words="true")
    for state, t_ns in (("begin", 5), ("end", 8)):
        journal.write("fault", t_ns=t_ns, verb="link-down", target="p0l0-p0s0", state=state, arguments={})
    journal.write("command", t_ns=10, state="stop", host="h0", rank=0, status=status, cause="", output="")
    journal.close()
    agent = Journal(directory.journal("h0"), "h0", lambda: 0)
    agent.write("qp", t_ns=failed_ns, qp=5, peer="h1", old="rts", new="error", cause=cause)
    agent.close()
    run = Run.open(directory.path)
    assert commands.first_cause(run) == expected
    assert [row[1:] for row in tables.cause_rows(run)] == ([list(expected[1:])] if expected else [])


def test_a_run_without_its_program_shows_nothing(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path, "own", 1)
    directory.journal("runner").write_text('{"t_ns": 0, "node": "runner", "kind": "phase", "name": "a"}\n')
    assert commands.ended_well()(Run.open(directory.path)).holds is None


def test_the_scenario_keeps_its_faults_and_phases_loses_its_traffic_and_only_known_places_are_filled_in() -> None:
    own = library.find("link-flap")
    made = with_command(own, Command("true 'a b'", ("h0", "h1")))
    assert (made.timeline, made.phases, made.plan) == (own.timeline, own.phases, own.plan)
    assert made.command is not None
    assert made.command.argv == ("true", "a b")
    assert filled("{host}:{other}:{}", {"host": "h1"}) == "h1:{other}:{}"


# --- a whole run ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of numpy's training program under the faults of `smoke`, in virtual time."""
    folder = tmp_path_factory.mktemp("runs")
    words = [
        "run", "smoke", "--world", "simulated", "--plain", "--rate", "100000", "--seed", "3", "--runs", str(folder),
    ]  # fmt: skip
    assert cli.main([*words, "--program", TRAINS, "--ranks", "h0..h1,h3"]) == 0
    return folder


def test_a_program_runs_under_a_scenarios_faults_and_is_in_report_and_replay(runs: Path, capsys) -> None:
    latest = runs / "latest"
    verdict = json.loads((latest / "verdict.json").read_text())
    assert verdict["verdict"] == "true"
    held = {finding["check"]: finding for finding in verdict["findings"]}
    assert held["program"]["reason"] == "status 0 in all 3 hosts"
    assert held["under faults"]["figures"]["while_running"] >= 1
    options = json.loads((latest / "options.json").read_text())
    assert options["program"] == TRAINS
    assert options["program_hosts"] == ["h0", "h1", "h3"]
    summary, report = (latest / "summary.txt").read_text(), (latest / "report.html").read_text()
    assert "printed in h0" in summary
    assert "step   79" in summary
    assert "status 0" in report
    assert "step   79" in report
    assert "--program 'python -m mrclab.training" in report.replace("&#x27;", "'")
    assert (latest / "replay.html").exists()
    assert "step   79" in (latest / "logs" / "h0-program.log").read_text()


def test_an_old_run_of_a_program_is_judged_by_the_same_checks(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (runs / "latest" / "summary.txt").read_text()
    assert cli.main(["report", "--runs", str(runs)]) == 0
    assert capsys.readouterr().out.startswith(before)


@pytest.mark.slow
def test_the_program_is_part_of_what_the_run_is(runs: Path) -> None:
    from running import identity

    options = json.loads((runs / "latest" / "options.json").read_text())
    assert identity.key(options) == options["key"]
    assert identity.key({**options, "program": "true"}) != options["key"]
    without = {name: value for name, value in options.items() if not name.startswith("program")}
    assert identity.key(without) != options["key"]


def test_a_program_that_fails_makes_the_verdict_false(tmp_path: Path) -> None:
    assert shutil.which("false")
    words = ["run", "smoke", "--world", "simulated", "--plain", "--rate", "100000", "--runs", str(tmp_path)]
    assert cli.main([*words, "--program", "false"]) == 1
    assert "h0: status 1; 2 of 2 failed" in (tmp_path / "latest" / "summary.txt").read_text()


def test_a_program_that_ends_while_a_switch_is_down_leaves_no_switch_without_tables(tmp_path: Path) -> None:
    words = [
        "run", "smoke", "--world", "simulated", "--plain", "--rate", "100000", "--seed", "3", "--ranks", "h0..h1,h3",
        "--runs", str(tmp_path),
    ]  # fmt: skip
    assert cli.main([*words, "--program", TRAINS.replace("--steps 80", "--steps 51")]) == 0
    lines = map(json.loads, (tmp_path / "latest" / "journal.jsonl").read_text().splitlines())
    crash = [line["state"] for line in lines if line["kind"] == "fault" and line["verb"] == "switch-crash"]
    assert crash == ["begin", "end"]
