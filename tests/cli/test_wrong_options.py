"""A wrong option or command: the error is the command's, in one line with the nearest one, and status 2."""

import argparse
from collections.abc import Iterator
from contextlib import suppress

import pytest

from cli import main as cli
from cli.command_table import commands
from cli.main import main
from cli.suggestions import SUGGESTIONS, nearest_option, suggest


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("run smoke --sede 3", "./lab run: no option --sede: did you mean --seed?"),
        ("run smoke --sede=3", "./lab run: no option --sede: did you mean --seed?"),
        ("run smoke --transp roce", "./lab run: no option --transp: did you mean --transport?"),
        ("run --sede 3", "./lab run: no option --sede: did you mean --seed?"),
        ("run --sede", "./lab run: no option --sede: did you mean --seed?"),
        ("run smoke --qqqq", "./lab run: no option --qqqq"),
        ("run smoke -q", "./lab run: no option -q"),
        ("list foo", "./lab list: unrecognized arguments: foo"),
        ("down foo", "./lab down: unrecognized arguments: foo"),
        ("hunt nosuch", "./lab hunt: unrecognized arguments: nosuch"),
        ("list -- --json", "./lab list: unrecognized arguments: -- --json"),
        ("paths h0 h1 --set", "./lab paths: no option --set"),
        ("controller show p0l0 --plam tiny", "./lab controller show: no option --plam: did you mean --plan?"),
        ("controller --nmae x", "./lab controller: no option --nmae: did you mean --name?"),
        ("--vesion", "./lab: no option --vesion: did you mean --version?"),
    ],
)
def test_a_wrong_option_is_told_by_its_command(words: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(words.split())
    assert left.value.code == 2
    assert capsys.readouterr().err == f"{told} (see {told.split(':')[0]} --help)\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("topo drwa", "'drwa' (did you mean draw? Choose from"),
        ("fault linkdown p0l0-p0s0", "'linkdown' (did you mean link-down? Choose from"),
        ("course hint 1", "./lab course: hint is a command by itself: ./lab hint (see"),
        ("fault qqqq p0l0-p0s0", "'qqqq' (choose from"),
        ("paths --ev 3", "arguments are required: FROM, TO"),
        ("run smoke --seed abc", "./lab run: --seed must be a whole number (got 'abc') (see ./lab run --help)\n"),
        (
            "capture h0-p0l0 --seconds x",
            "./lab capture: --seconds must be a number (got 'x') (see ./lab capture --help)\n",
        ),
    ],
)
def test_a_misspelled_or_missing_argument_is_told_and_what_is_no_number_in_one_line(words: str, told, capsys) -> None:
    with pytest.raises(SystemExit):
        main(words.split())
    said = capsys.readouterr().err
    assert told in said
    assert said == told or not told.endswith("\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("run link-flpa", "mrclab: no scenario 'link-flpa' (did you mean link-flap?): valid are smoke, "),
        ("run smoke --transport mcr", "mrclab: no transport 'mcr' (did you mean mrc?): valid are mrc, "),
        ("run qqqq", "mrclab: no scenario 'qqqq': valid are smoke, "),
        ("xyzzy", "mrclab: no command 'xyzzy': valid are run, list, "),
        ("paths h0 h0 --plan tiny", "mrclab: paths must be between two hosts (got h0 twice)"),
        ("hints 1", "mrclab: no command 'hints': did you mean ./lab hint?"),
        ("controller show p0l0 --plan tiny", "controller show: no lab is running: ./lab up starts one; --planned"),
    ],
)
def test_a_misspelled_name_is_told_with_the_nearest(words: str, told: str, refused) -> None:
    assert refused(*words.split()).startswith(told)


def test_each_suggestion_begins_with_a_command_and_is_for_no_command() -> None:
    assert SUGGESTIONS.keys() & commands().keys() == set()
    unknown = {word: told for word, told in SUGGESTIONS.items() if told.split(",")[0].split()[0] not in commands()}
    assert unknown == {"help": "--help", "version": "--version"}


def test_misspelled_commands_options_and_words_for_faults_are_found() -> None:
    assert suggest("sweeep", commands()) == "sweep"
    assert suggest("linkdown", commands()) == "fault link-down A-B"
    assert suggest("qqqq", commands()) == ""
    options = ("-h", "--help", "--seed", "--seeds", "--transport", "--set")
    assert nearest_option("--transp", options) == "--transport"
    assert nearest_option("--sede", options) in ("--seed", "--seeds")
    assert nearest_option("--SEED", options) == "--seed"
    assert nearest_option("-seed", options) == "--seed"
    assert nearest_option("--q", options) == ""


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and all parsers of its subcommands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for own in action.choices.values():
                yield from parsers(own)


@pytest.mark.parametrize("word", commands())
def test_an_option_given_twice_adds_up_or_is_refused(word: str) -> None:
    ways = [
        (parser, action)
        for parser in list(parsers(cli.parser(word)))[1:]
        for action in parser._actions
        if action.option_strings and action.nargs != 0
    ]
    assert ways
    for parser, action in ways:
        namespace = argparse.Namespace(**{action.dest: action.default})
        option = action.option_strings[-1]
        action(parser, namespace, "first", option)
        with suppress(argparse.ArgumentError):
            action(parser, namespace, "second", option)
            value = getattr(namespace, action.dest)
            given = set(value.split(",") if isinstance(value, str) else value)
            assert {"first", "second"} <= given, f"{parser.prog} {option}"


def test_scenarios_and_algorithms_of_a_contest_add_up() -> None:
    words = "contest --algorithms mrc --scenario smoke --algorithms=reps,ev --scenario grey-link"
    found = cli.parser("contest").parse_args(words.split())
    assert (found.algorithms, found.scenario) == ("mrc,reps,ev", "smoke,grey-link")


def test_a_plan_given_twice_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["run", "smoke", "--plan", "tiny", "--plan=lab"])
    said = capsys.readouterr().err.rstrip()
    assert said.endswith("run: --plan: is given more than once (tiny, lab) (see ./lab run --help)")


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
