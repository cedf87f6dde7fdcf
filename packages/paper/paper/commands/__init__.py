"""Commands of the reproduction, as `pyproject.toml` names them."""

from cli import VIRTUAL, CommandEntry

REPRODUCE = CommandEntry(
    "the figures of the MRC paper, run here and compared", "paper.commands.reproduce:register", needs=VIRTUAL
)
