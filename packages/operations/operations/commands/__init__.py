"""Commands for operators, as `pyproject.toml` names them."""

from cli import COMPILER, VIRTUAL, CommandEntry

INCIDENT = CommandEntry(
    "a lab with a hidden fault: find it with the lab's own tools",
    "operations.commands.incident:register",
    needs=COMPILER,
)
REHEARSE = CommandEntry(
    "a change on many seeds: does the job notice, and at which step",
    "operations.commands.rehearse:register",
    needs=VIRTUAL,
)
MCP = CommandEntry(
    "incidents and rehearsals for agents, over the Model Context Protocol",
    "operations.commands.mcp:register",
    needs=VIRTUAL,
)
