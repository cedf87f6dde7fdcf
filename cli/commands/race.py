"""`mrclab run --transport ONE,OTHER --view`: two transports on one page, stepped together in virtual time."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cli.compiled_form import LONG_S, want_compiled
from cli.options import seed_of
from cli.ownership import hand_over
from common.outcome import at_the_end
from common.quoting import command
from common.terminal.printable import path_line
from common.terminal.standard_streams import write_out
from running.directory import RunDirectory
from running.transport_choice import TRANSPORTS, transport

if TYPE_CHECKING:
    from page.live import RunView
    from running.live import Watcher
    from running.preparation import PreparedRun
    from running.runner import Runner
    from running.spec import RunSpec
    from scenarios.scenario import Scenario

RUNS_MAX = 2


@dataclass(frozen=True, slots=True)
class Racer:
    """One run of a race."""

    directory: RunDirectory
    runner: Runner

    @property
    def spec(self) -> RunSpec:
        return self.runner.spec


def check(arguments: argparse.Namespace) -> list[str]:
    """The transports of a race. ValueError says what is wrong with the words of the command."""
    names = [name.strip() for name in arguments.transport.split(",")]
    for name in names:
        transport(name)
    if len(names) > RUNS_MAX or len(set(names)) < len(names):
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


def race_command(arguments: argparse.Namespace) -> int:
    """Run both, judge both. The exit status is that of the transport that was named first."""
    from cli.choosing import scenario_of
    from common.terminal.console import LastingConsole
    from judging.judge import judge
    from page import export
    from page.live import Going, RunView
    from running.live import Watcher

    names = check(arguments)
    scenario = scenario_of(arguments)
    console = LastingConsole()
    seed = seed_of(arguments.seed)
    want_compiled(arguments, 0 if arguments.short else LONG_S, told=False)
    with ExitStack() as stack:
        ready = [prepared(scenario, arguments, name, seed) for name in names]  # all, before there is a folder of any
        racers = [racer(arguments, one) for one in ready]
        for one in racers:
            watcher = stack.enter_context(Watcher(console, scenario, one.directory, plain=True))
            watcher.seconds = one.runner.seconds
            watcher.options(one.spec.options())
            one.runner.tell = partial(say, watcher, one.spec.choices.transport.name)
        going = [Going.of(one.spec.choices, one.directory) for one in racers]
        view = stack.enter_context(RunView(going, console.tell, hand_over=hand_over, paused=arguments.paused))
        write_out(f"view: {view.viewer.address}\n", sys.stderr)
        verdicts = []
        made = [path for one in racers for path in one.directory.made]

        def judged() -> None:
            for one in racers:
                export.beside_report(one.directory.path)
                verdicts.append(judge(one.directory.path, one.spec.checks(), scenario.story))

        with at_the_end(lambda: hand_over(*made)), at_the_end(judged):
            run_all(racers, view)
    for one in racers:
        write_out(f"\n{one.spec.choices.transport.name}\n" + (one.directory.path / "summary.txt").read_text())
        write_out(path_line("\nreport:", one.directory.path / "report.html"))
    write_out(f"again: {command('view', *(one.directory.path for one in racers))}\n")
    return verdicts[0].exit_status


def prepared(scenario: Scenario, arguments: argparse.Namespace, name: str, seed: int) -> PreparedRun:
    """One run, checked: all words of the command that concern its transport. ValueError when it cannot be."""
    from cli.choosing import choose
    from running.preparation import prepare

    roce_alone = {} if TRANSPORTS[name].single_plane else {"reconvergence": None}
    own = argparse.Namespace(**{**vars(arguments), "transport": name, "seed": seed, **roce_alone})
    return prepare(choose(scenario, own, lambda line: None))


def racer(arguments: argparse.Namespace, run: PreparedRun) -> Racer:
    """The run with its folder."""
    directory = RunDirectory.create(arguments.runs, run.spec.scenario.name, run.spec.seed)
    return Racer(directory, run.runner(directory))


def say(watcher: Watcher, name: str, line: str) -> None:
    watcher.tell(f"{name}: {line}")


def run_all(racers: Sequence[Racer], view: RunView) -> None:
    """The first run in this thread, the other one beside. Ctrl-C ends both; an error of one is raised at the end."""
    from running.launch import launch

    errors: list[BaseException] = []

    def run(lane: int) -> None:
        try:
            launch(racers[lane].runner, lambda make_world: view.opened(make_world, lane))
        finally:
            view.abreast.leave(lane)

    def beside(lane: int) -> None:
        try:
            run(lane)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=beside, args=(lane,), name=f"race-{lane}") for lane in range(1, len(racers))]
    for thread in threads:
        thread.start()
    try:
        run(0)
        for thread in threads:
            thread.join()
    except BaseException:
        for lane, pacer in enumerate(view.pacers):
            pacer.interrupt()
            view.abreast.leave(lane)
        for thread in threads:
            thread.join()
        raise
    for error in errors:
        raise error
