"""Commands of the course, as `pyproject.toml` names them."""

from cli import COMPILER, CommandEntry

COURSE = CommandEntry("the labs of the course, and which of them are done", "course.commands.course:register")
START = CommandEntry("put the starter of a lab into mylab/", "course.commands.start:register")
CHECK = CommandEntry("check a lab of the course; no root", "course.commands.check:register", needs=COMPILER)
HINT = CommandEntry("the next hint for a lab's failed test", "course.commands.check:register_hint")
GRADE = CommandEntry(
    "grade a folder of submissions: tables, pages, similar pairs", "course.commands.grade:register", needs=COMPILER
)
