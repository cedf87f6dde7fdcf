"""`mrclab run`: one run, or two transports on one page, stepped together in virtual time."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from cli.command_table import add
from cli.compiled_form import want_compiled
from cli.options import add_plain, add_runs, seed_of
from cli.ownership import hand_over
from cli.root import need_root
from common import plain_file
from common.garbage import not_collected
from common.outcome import at_the_end
from common.quoting import command
from common.terminal.printable import path_line
from common.terminal.standard_streams import write_out
from running import RunDirectory
from running.options import DEFAULTS, OPTIONS
from running.transport_choice import transport
from scenarios import library
from topo.emulation import labname

if TYPE_CHECKING:
    from cli.live import Watcher
    from common.terminal.console import LastingConsole
    from judging import Verdict
    from page import RunView
    from running import Runner, RunSpec
    from running.runner import PreparedRun

RACERS_MAX = 2


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = add(subparsers, "run", run_command, __file__)
    for option in OPTIONS.values():
        option.add(run)
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


def refuse_second_lab() -> None:
    """LabRunningError while the chosen lab is up: a run brings up its own lab, and replaces an abandoned one."""
    from topo.emulation import state, there_already

    existing = state.read_record()
    if existing is not None and not existing.abandoned:
        raise state.LabRunningError(there_already(existing))


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
    runs.with_mpiexec()


def check_parts(processes: int, spec: RunSpec) -> None:
    """ValueError when the run cannot be divided into so many parts."""
    from running.parallel import Partition, runs

    if spec.programs():
        raise ValueError(
            f"--processes {processes}: programs in hosts run with one process only, and {spec.scenario.name} has some"
        )
    Partition.of(spec.plan, processes)
    runs.mpiexec()


def check_race(arguments: argparse.Namespace) -> list[str]:
    """The transports: one, or those of a race. ValueError says what is wrong with the words of the command."""
    if arguments.paused and not (arguments.view and arguments.world == "simulated"):
        raise ValueError("--paused: only with --view and --world simulated, where the page can let the run go on")
    names = [name.strip() for name in arguments.transport.split(",")]
    for name in names:
        transport(name)
    if len(names) == 1:
        return names
    if len(names) > RACERS_MAX or len(set(names)) < len(names):
        raise ValueError(f"--transport {arguments.transport}: a race is between two different transports")
    if arguments.world != "simulated" or not arguments.view:
        raise ValueError(
            f"--transport {arguments.transport}: two transports race with --world simulated --view, where time waits"
            " for both; on real links run one after the other, then `./lab view RUN OTHER`"
        )
    if arguments.format != "text":
        raise ValueError(
            "--format json tells of one run; a race has two: `./lab report RUN --format json` tells of each"
        )
    return names


def chosen_runs(arguments: argparse.Namespace, names: Sequence[str], console: LastingConsole) -> list[PreparedRun]:
    """The run of each transport, checked. ValueError when one of them cannot be made."""
    from cli.choosing import choose
    from running import prepare

    seed = seed_of(arguments.seed)
    prepared: list[PreparedRun] = []
    for name in names:
        # In a race, options that only RoCE has are RoCE's.
        own = argparse.Namespace(**{**vars(arguments), "transport": name, "seed": seed})
        if len(names) > 1 and not transport(name).single_plane:
            own.reconvergence = DEFAULTS["reconvergence"]
        tell = console.tell if not prepared else lambda line: None
        spec = choose(own, tell, lambda spec: want_compiled(arguments, spec.seconds, told=False, quick=True))
        prepared.append(prepare(spec))
    if arguments.world == "simulated":
        want_compiled(arguments, sum(run.needed.seconds for run in prepared), told=False)
    if arguments.processes != 1:
        check_parts(arguments.processes, prepared[0].spec)
    return prepared


@dataclass(frozen=True, slots=True)
class Lane:
    """A run that goes on."""

    runner: Runner
    watcher: Watcher

    @property
    def spec(self) -> RunSpec:
        return self.runner.spec

    @property
    def directory(self) -> RunDirectory:
        return self.runner.directory

    @not_collected()  # lines of a journal and the classes of Matplotlib stay
    def judged(self) -> Verdict:
        """The verdict. An interrupted run is judged too: it is unknown, and its directory opens like any other."""
        from judging.judge import judge
        from page import export

        return judge(self.directory.path, self.spec.checks(), self.spec.scenario.story, replay=export.beside_report)


def run_command(arguments: argparse.Namespace) -> int:
    """Run, judge, and say where the report is. The exit status is that of the transport that was named first."""
    from common.terminal.console import LastingConsole  # late, like all below: the help needs none of them

    names = check_race(arguments)
    check_processes(arguments)
    if arguments.world == "emulated":
        need_root(f"run {library.find(arguments.scenario).name} builds network namespaces")
        refuse_second_lab()  # before minutes go into a calibration
    told = arguments.format == "text"
    console = LastingConsole(quiet=not told)
    ready = chosen_runs(arguments, names, console)  # all, before there is a folder of any
    with ExitStack() as stack:
        lanes = [lane(arguments, run, console, stack, len(names) > 1) for run in ready]
        view = open_page(arguments, lanes, console, stack) if arguments.view else None
        verdicts: list[Verdict] = []
        made = [path for lane in lanes for path in lane.directory.made]
        with at_the_end(lambda: hand_over(*made)), at_the_end(lambda: verdicts.extend(lane.judged() for lane in lanes)):
            if arguments.processes > 1:
                launch_parts(arguments.processes, lanes[0])
            else:
                launch_all(lanes, view)
    for ran in lanes:
        path = ran.directory.path
        if told:
            heading = f"\n{ran.spec.choices.transport.name}\n" if len(lanes) > 1 else "\n"
            summary = plain_file.read_bytes(path / "summary.txt").decode()
            write_out(heading + summary + path_line("\nreport:", path / "report.html"))
        else:
            parts = {name: plain_file.read_object(path / f"{name}.json") for name in ("options", "verdict")}
            whole = {"directory": str(path), "options": parts["options"], **parts["verdict"]}
            write_out(json.dumps(whole, indent=1) + "\n")
    if len(lanes) > 1:
        write_out(f"again: {command('view', *(lane.directory.path for lane in lanes))}\n")
    return verdicts[0].exit_status


def lane(
    arguments: argparse.Namespace, prepared: PreparedRun, console: LastingConsole, stack: ExitStack, race: bool
) -> Lane:
    """A run with its folder, watched; of a race each line begins with the transport."""
    from cli.live import Watcher

    spec = prepared.spec
    directory = RunDirectory.create(arguments.runs, spec.scenario.name, spec.seed)
    plain = race or arguments.plain or arguments.format != "text"
    watcher = stack.enter_context(Watcher(console, spec.scenario, directory, plain=plain))
    runner = prepared.runner(directory, partial(say, watcher, f"{spec.choices.transport.name}: " if race else ""))
    watcher.seconds = runner.seconds
    load = spec.scenario.load
    watcher.options(spec.options(), 0.0 if load is None else load(spec.setting).seconds)
    if not race:
        watcher.tell(f"this run takes {prepared.needed.describe()}")
    return Lane(runner, watcher)


def say(watcher: Watcher, who: str, line: str) -> None:
    watcher.tell(who + line)


def open_page(
    arguments: argparse.Namespace, lanes: Sequence[Lane], console: LastingConsole, stack: ExitStack
) -> RunView:
    """The page of the runs; its address goes to standard error, where no output is read by programs."""
    from page import Going, RunView

    going = [Going.of(lane.spec.choices, lane.directory) for lane in lanes]
    tell: Callable[[str], None] = console.tell if len(lanes) > 1 else lanes[0].watcher.tell
    view = stack.enter_context(RunView(going, tell, hand_over=hand_over, paused=arguments.paused))
    write_out(f"view: {view.viewer.address}\n", sys.stderr)
    return view


def launch_parts(processes: int, lane: Lane) -> None:
    """Carry a run out on several processes. It is judged without one that was killed, and is unknown."""
    from running.parallel import runs

    reached: dict[str, Any] = {}

    def take_message(message: dict[str, Any]) -> None:
        reached.update(message)
        if "event" in message:
            lane.watcher.tell(str(message["event"]))

    lane.watcher.seconds = lambda: reached.get("seconds")
    lane.runner.write_choices()  # the first process may be killed before it does
    try:
        runs.make(lane.spec, lane.directory, processes, take_message)
    except BaseException as error:
        runs.journal_end(lane.directory, int(reached.get("now_ns", 0)), error)
        if not isinstance(error, runs.PartLostError):
            raise
        lane.watcher.tell(str(error))


def launch_all(lanes: Sequence[Lane], view: RunView | None) -> None:
    """All runs at once, on the page if there is one."""
    from running.runner import launch

    if view is None:
        launch(lanes[0].runner)
    elif len(lanes) == 1:
        launch(lanes[0].runner, view.opened)
    else:
        race(lanes, view)


def race(lanes: Sequence[Lane], view: RunView) -> None:
    """The first run in this thread, the other one beside. Ctrl-C ends both; an error of one is raised at the end."""
    from running.runner import launch

    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            launch(lanes[number].runner, lambda make_world: view.opened(make_world, number))
        finally:
            view.abreast.leave(number)

    def beside(number: int) -> None:
        try:
            run(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=beside, args=(n,), name=f"race-{n}") for n in range(1, len(lanes))]
    for thread in threads:
        thread.start()
    try:
        run(0)
        for thread in threads:
            thread.join()
    except BaseException:
        for number, pacer in enumerate(view.pacers):
            pacer.interrupt()
            view.abreast.leave(number)
        for thread in threads:
            thread.join()
        raise
    for error in errors:
        raise error
