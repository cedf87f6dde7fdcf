"""Any scenario with a user's command in place of its own traffic: `./lab run SCENARIO --program COMMAND`.

Plan, phases and faults stay the scenario's. The checks are those that hold for any program: what the lab cannot know of
a program, such as which bytes it should have, the program's exit status has to say.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from judging import checks, commands
from judging.checks import Check
from scenarios.scenario import Command, Program, Scenario, Setting, Workload, carried_out

__all__ = ["judge", "judge_any", "with_command"]

NAME = "program"
PATIENCE_S = 600.0  # lab time for which a run waits for the program after its last phase
LIKE_BYTES = 1 << 20


def with_command(scenario: Scenario, command: Command) -> Scenario:
    """The scenario whose only traffic is the command's. The run ends when the command has ended in all hosts."""
    return replace(
        scenario,
        workloads=lambda setting: (),
        programs=partial(programs, command, scenario.phases[0].name),
        checks=partial(judge, scenario),
        command=command,
        short=(),
        until_done=True,
        load=None,
    )


def programs(command: Command, phase: str, setting: Setting) -> Sequence[Program]:
    """A process of the command in each of its hosts, from the first phase on."""
    like = Workload("all_reduce", {"size": LIKE_BYTES, "rounds": 0}, ranks=command.hosts)
    return [Program(NAME, command.argv, like, command.hosts, phase, command=True, patience_s=PATIENCE_S)]


def judge(scenario: Scenario, setting: Setting) -> Sequence[Check]:
    """The checks of any command under this scenario's faults."""
    return [*judge_any(), *([commands.under_faults(), checks.faults_felt()] if has_faults(scenario, setting) else [])]


def judge_any() -> list[Check]:
    """Those that need no scenario: of an old run whose scenario is a file that is not to be run."""
    return [commands.ended_well(), checks.no_qp_error(), checks.tables_unchanged()]


def has_faults(scenario: Scenario, setting: Setting) -> bool:
    """Whether the scenario breaks anything."""
    return bool(carried_out(setting, scenario.timeline(setting)))
