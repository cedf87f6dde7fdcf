"""A student's class as a setting of `./lab run`: a counterexample's adapter file asks for it."""

from pathlib import Path
from typing import Any

from common import plain_file
from course.box.box import Box, BoxLimits
from course.seams.log import Seat
from course.seams.trial import SEAM, Seam

PATIENT = BoxLimits(processor_s=600, answer_s=60.0)


def of_student(path: str, seam: Seam, rtt_ns: int) -> type[Any]:
    """The class of the transport that asks the class in a student's file, in a box that ends with this process."""
    file = Path(path)
    seat = Seat(lambda: Box(plain_file.read_named(file), file.name, PATIENT), rtt_ns)
    return seat.of_student(SEAM[seam][1], boxes=seam == "ports")
