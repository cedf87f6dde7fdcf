"""An option that is given again adds up, or is refused: the last one alone never counts in silence."""

import argparse
from collections.abc import Iterator
from contextlib import suppress

import pytest

from cli import main as cli
from cli.command_table import commands


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and all parsers of its subcommands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for own in action.choices.values():
                yield from parsers(own)


OPTIONS = [
    pytest.param(parser, action, id=f"{parser.prog.removeprefix('mrclab ')} {action.option_strings[0]}")
    for word in commands()
    for parser in list(parsers(cli.parser(word)))[1:]
    for action in parser._actions
    if action.option_strings and action.nargs != 0
]


def test_the_options_of_all_commands_were_found() -> None:
    assert len(OPTIONS) > 200


@pytest.mark.parametrize(("parser", "action"), OPTIONS)
def test_an_option_given_twice_adds_up_or_is_refused(parser: argparse.ArgumentParser, action: argparse.Action) -> None:
    namespace = argparse.Namespace(**{action.dest: action.default})
    option = action.option_strings[-1]
    action(parser, namespace, "first", option)
    with suppress(argparse.ArgumentError):
        action(parser, namespace, "second", option)
        value = getattr(namespace, action.dest)
        assert {"first", "second"} <= set(value.split(",") if isinstance(value, str) else value)


def test_scenarios_and_algorithms_of_a_contest_add_up() -> None:
    words = "contest --algorithms mrc --scenario smoke --algorithms=reps,ev --scenario grey-link"
    found = cli.parser("contest").parse_args(words.split())
    assert (found.algorithms, found.scenario) == ("mrc,reps,ev", "smoke,grey-link")


def test_a_plan_given_twice_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["run", "smoke", "--plan", "tiny", "--plan=lab"])
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith("run: error: argument --plan: is given more than once (tiny, lab)")


@pytest.mark.parametrize("words", [
    "run smoke --world simulated --set trimming.enabled=false --set trimming.enabled=true",
    "run smoke --world simulated --setting selection=reps --setting selection=mrc",
    "up tiny --set trimming.enabled=false --set trimming.enabled=true",
    "hunt --setting selection=reps --setting selection=mrc",
])  # fmt: skip
def test_a_setting_with_two_values_is_refused(words: str, tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*words.split(), *(["--runs", str(tmp_path)] if "--world" in words else [])]) == 2
    *_, option, first, _, second = words.split()
    assert f"{option} must give each name once (got {first!r} and {second!r})" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
