"""Names that commands of the course take, checked before anything is installed."""

import argparse

from course.order import name_of
from course.student import OWN_KEY, OWN_NAME, Student, joined


def check_names(arguments: argparse.Namespace) -> None:
    """ValueError for a lab that is none, and for a student's name, a key or a code that cannot be."""
    given = vars(arguments)
    if given.get("action") == "join":
        joined(arguments.lab or "")
    elif arguments.lab is not None:
        name_of(arguments.lab)
    name, key = given.get("student"), given.get("key")
    Student(OWN_NAME if name is None else name, OWN_KEY if key is None else key)
