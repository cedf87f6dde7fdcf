"""`mrclab run`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cli.command_table import add
from cli.compiled_form import want_compiled
from cli.options import add_plain, add_runs, add_time
from cli.ownership import hand_over
from cli.root import need_root
from common.interrupts import sigterm_too
from common.outcome import at_the_end
from common.terminal.printable import path_line
from common.terminal.standard_streams import write_out
from running import fault_words
from running.directory import RunDirectory
from running.transport_choice import TRANSPORTS
from topo.emulation import labname
from topo.summaries import SET

if TYPE_CHECKING:
    from page.live import RunView
    from running.choices import Choices
    from running.live import Watcher
    from running.spec import RunSpec

DESCRIPTION = "Bring a lab up, run a scenario in it, take it down, judge what happened."
EXAMPLES = """examples:
  ./lab run link-flap                        the main demonstration, about a minute
  ./lab run link-flap --short                the same in half a minute
  ./lab run link-flap --view                 the same on a page in the browser, where cables are cut by clicks
  ./lab run link-flap --world simulated --view --transport mrc,roce   two runs side by side, stepped together
  ./lab run link-flap --transport roce       the same faults under RoCE, on one plane
  ./lab run incast --set trimming.enabled=false
  ./lab run my_experiment.py --seed 7
  ./lab run schedules/examples/barrier.cm --plan tiny --world simulated --rate 100000
  ./lab run link-flap --program 'ib_write_bw -D 40 {server}'   a program of your own under the same faults
  ./lab run smoke --fault 'loss p0l1-p0s1 20 @1 for 2'
  ./lab run incast --world simulated --rate 100000 --record-packets 15..15.5
exit status: 0 the verdict is true, 1 false, 3 unknown, 2 the run could not be made"""


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of `run_command` from words of this command line. ValueError for words that it does not know."""
    whole = argparse.ArgumentParser(prog="./lab", exit_on_error=False)
    register(whole.add_subparsers())
    try:
        return whole.parse_args(["run", *words])
    except argparse.ArgumentError as error:
        raise ValueError(str(error)) from None


def chosen(words: Sequence[str]) -> RunSpec:
    """The run that these arguments of `./lab run` describe. ValueError for arguments that it does not know."""
    from cli.choosing import choose, scenario_of

    arguments = parsed(words)
    return choose(scenario_of(arguments), arguments, lambda line: None)


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = add(subparsers, "run", run_command, EXAMPLES, DESCRIPTION)
    run.add_argument(
        "scenario",
        help="a name from 'list', a .py file of your own, or workloads: FILE.cm or FILE.goal[,FILE…][@PLACEMENT]",
    )
    run.add_argument(
        "--transport",
        default="mrc",
        metavar="NAME",
        help=f"one of {', '.join(TRANSPORTS)} (mrc); two, with a comma, race on a page",
    )
    add_variations(run)
    add_program(run)
    run.add_argument("--seed", type=int, help="repeat a run's random choices (a new seed each time)")
    add_world(run)
    run.add_argument(
        "--payload",
        choices=("real", "counted"),
        default="real",
        help="counted: frames carry no payload, and only its place is checked (virtual time)",
    )
    run.add_argument("--rate", type=float, metavar="MBPS", help="rate of a NIC port; without it, calibrated")
    run.add_argument("--calibrate", action="store_true", help="measure this machine again first")
    run.add_argument(
        "--reconvergence",
        type=float,
        metavar="SECONDS",
        help="RoCE: routing avoids a dead link this long after its failure",
    )
    add_extent(run)
    add_runs(run)
    run.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="json: options, verdict and figures, and nothing else",
    )
    add_plain(run, "live view")
    run.add_argument("--view", action="store_true", help="also show the run in the browser; prints the page's address")
    run.add_argument(
        "--paused", action="store_true", help="with --view, in virtual time: start paused; resume from the page"
    )
    labname.add_option(run)


def add_variations(run: argparse.ArgumentParser) -> None:
    """The plan, its keys, settings of the transport, and faults beside the scenario's."""
    run.add_argument(
        "--plan",
        metavar="PLAN",
        help="another plan than the scenario's: a name, a .toml file, or a .topo file of htsim",
    )
    run.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=SET)
    run.add_argument(
        "--setting", action="append", default=[], metavar="NAME=VALUE", help="a setting of the transport (selection=…)"
    )
    run.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="WORDS",
        help=f"add a fault: '{fault_words.EXAMPLE}' (seconds into phase faults; in PHASE); repeatable",
    )


def add_extent(run: argparse.ArgumentParser) -> None:
    """How long a run takes, and which part of it is recorded."""
    add_time(run)
    run.add_argument(
        "--until", type=float, metavar="SECONDS", help="stop then, without a verdict (virtual time, at lab rates)"
    )
    run.add_argument(
        "--record-packets",
        metavar="START..END",
        help="log every packet between these seconds of the run (virtual time, at lab rates): packets.jsonl",
    )
    run.add_argument("--short", action="store_true", help="the shortest phases that still give a verdict: under 30 s")


def add_world(run: argparse.ArgumentParser) -> None:
    """The options that say where a run is made."""
    run.add_argument(
        "--world", choices=("emulated", "simulated"), default="emulated", help="Mininet, or virtual time without root"
    )
    run.add_argument(
        "--processes", type=int, default=1, metavar="N", help="processes that share a run in virtual time (1)"
    )


def add_program(run: argparse.ArgumentParser) -> None:
    """The options of a command in place of the scenario's traffic."""
    run.add_argument(
        "--program",
        metavar="COMMAND",
        help="a command in hosts in place of the scenario's traffic: 'ib_write_bw -D 20 {server}' (docs/libmrc.md)",
    )
    run.add_argument("--ranks", metavar="HOSTS", help="hosts of --program, rank 0 first: h0..h3,h6 (first and last)")


def refuse_second_lab() -> None:
    """LabRunningError while the chosen lab is up: a run brings up its own lab, and replaces an abandoned one."""
    from topo.emulation import state
    from topo.emulation.lab import there_already

    existing = state.read_record()
    if existing is not None and not existing.abandoned:
        raise state.LabRunningError(there_already(existing))


@contextmanager
def shown(
    arguments: argparse.Namespace, choices: Choices, directory: RunDirectory, tell: Callable[[str], None]
) -> Iterator[RunView | None]:
    """The run's page, with --view; its address goes to standard error, where no output is read by programs."""
    if not arguments.view:
        yield None
        return
    from page.live import Going, RunView

    going = Going.of(choices, directory)
    with RunView([going], tell, hand_over=hand_over, paused=arguments.paused) as view:
        write_out(f"view: {view.viewer.address}\n", sys.stderr)
        yield view


def check_processes(arguments: argparse.Namespace) -> None:
    """ValueError when --processes does not fit the other options."""
    from running.parallel import runs

    if arguments.processes == 1:
        return
    given = f"--processes {arguments.processes}"
    if not 1 <= arguments.processes <= runs.PROCESSES_MAX:
        raise ValueError(f"--processes must be between 1 and {runs.PROCESSES_MAX} (got {arguments.processes})")
    if arguments.world != "simulated":
        raise ValueError(f"{given}: only with --world simulated; on real links every host is a process anyway")
    if arguments.view:
        raise ValueError(f"{given}: not with --view, which holds all of it in one process; ./lab view shows it later")


def check_parts(processes: int, spec: RunSpec) -> None:
    """ValueError when the run cannot be divided into so many parts."""
    from running.parallel import runs
    from running.parallel.partition import Partition

    if spec.programs():
        raise ValueError(
            f"--processes {processes}: programs in hosts run with one process only, and {spec.scenario.name} has some"
        )
    Partition.of(spec.plan, processes)
    runs.mpiexec()


def launch_parts(arguments: argparse.Namespace, spec: RunSpec, directory: RunDirectory, watcher: Watcher) -> None:
    """Carry a run out on several processes."""
    from cli.part import command
    from running.parallel import runs

    reached: dict[str, Any] = {}

    def told(message: dict[str, Any]) -> None:
        reached.update(message)
        if "event" in message:
            watcher.tell(str(message["event"]))

    watcher.seconds = lambda: reached.get("seconds")
    try:
        runs.make(command(arguments, spec.seed, directory.path), arguments.processes, told)
    except BaseException as error:
        runs.journal_end(directory, int(reached.get("now_ns", 0)), error)
        raise


@sigterm_too()
def run_command(arguments: argparse.Namespace) -> int:
    # Late: matplotlib, numpy and gRPC take seconds, and the help needs none of them.
    from cli.choosing import choose, scenario_of
    from common.terminal.console import LastingConsole
    from judging.judge import judge
    from page import export
    from running.launch import launch
    from running.live import Watcher
    from running.preparation import prepare

    if arguments.paused and not (arguments.view and arguments.world == "simulated"):
        raise ValueError("--paused: only with --view and --world simulated, where the page can let the run go on")
    if "," in arguments.transport:
        from cli.commands.race import race_command

        return race_command(arguments)
    scenario = scenario_of(arguments)
    check_processes(arguments)
    if arguments.world == "emulated":
        need_root(f"run {scenario.name} builds network namespaces")
        refuse_second_lab()  # before minutes go into a calibration
    told = arguments.format == "text"
    console = LastingConsole(quiet=not told)
    seconds = arguments.time * sum(phase.seconds for phase in scenario.phases)
    spec = choose(scenario, arguments, console.tell, lambda: want_compiled(arguments, seconds, told=False))
    prepared = prepare(spec)
    if arguments.processes != 1:
        check_parts(arguments.processes, spec)
    if arguments.world == "simulated":
        want_compiled(arguments, prepared.needed.seconds, told=False)
    directory = RunDirectory.create(arguments.runs, scenario.name, spec.seed)
    with (
        Watcher(console, scenario, directory, plain=arguments.plain or not told) as watcher,
        shown(arguments, spec.choices, directory, watcher.tell) as view,
    ):
        runner = prepared.runner(directory, watcher.tell)
        watcher.seconds = runner.seconds
        watcher.options(spec.options())
        watcher.tell(f"this run takes {prepared.needed.words()}")
        verdicts = []

        def judged() -> None:
            """An interrupted run is judged too: it is unknown, and its directory opens like any other."""
            export.beside_report(directory.path)
            verdicts.append(judge(directory.path, spec.checks(), scenario.story))

        with at_the_end(lambda: hand_over(*directory.made)), at_the_end(judged):
            if arguments.processes > 1:
                launch_parts(arguments, spec, directory, watcher)
            else:
                launch(runner, view.opened) if view is not None else launch(runner)
    if told:
        write_out("\n" + (directory.path / "summary.txt").read_text())
        write_out(path_line("\nreport:", directory.path / "report.html"))
    else:
        parts = {name: json.loads((directory.path / f"{name}.json").read_text()) for name in ("options", "verdict")}
        whole = {"directory": str(directory.path), "options": parts["options"], **parts["verdict"]}
        write_out(json.dumps(whole, indent=1) + "\n")
    return verdicts[0].exit_status
