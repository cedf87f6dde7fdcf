"""The command of this package, as `pyproject.toml` names it."""

from cli import VIRTUAL, CommandEntry

ANSWERS = CommandEntry(
    "several answers to a dead link on one fabric: a contest on the same seeds",
    "answers.commands.answers:register",
    needs=VIRTUAL,
)
