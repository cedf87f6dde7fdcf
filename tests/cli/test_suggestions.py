"""Words of other labs: each leads to a command, and none is a command itself, which would never be asked for."""

from cli.command_table import commands
from cli.suggestions import SUGGESTIONS, nearest_option, suggest


def test_a_word_that_is_a_command_needs_no_suggestion() -> None:
    assert SUGGESTIONS.keys() & commands().keys() == set()


def test_each_suggestion_begins_with_a_command() -> None:
    unknown = {word: told for word, told in SUGGESTIONS.items() if told.split(",")[0].split()[0] not in commands()}
    assert unknown == {"help": "--help", "version": "--version"}


def test_misspelled_commands_and_words_for_faults_are_found() -> None:
    assert suggest("sweeep", commands()) == "sweep"
    assert suggest("linkdown", commands()) == "fault link-down A-B"
    assert suggest("qqqq", commands()) == ""


def test_the_nearest_option_is_found_by_its_beginning_or_its_letters() -> None:
    options = ("-h", "--help", "--seed", "--seeds", "--transport", "--set")
    assert nearest_option("--transp", options) == "--transport"
    assert nearest_option("--sede", options) in ("--seed", "--seeds")
    assert nearest_option("--SEED", options) == "--seed"
    assert nearest_option("-seed", options) == "--seed"
    assert nearest_option("--q", options) == ""
