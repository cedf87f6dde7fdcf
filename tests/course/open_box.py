"""A box without walls, for code that is trusted: references and wrong solutions of a sample run in this process.

Requests and answers are those of `course/box/inside.py`, through JSON as well, so a check can't tell the difference.
Half of the time is saved. Nothing is protected here: cheats need the real box.
"""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from course.box import inside
from course.box.box import Box, BoxError, BoxLimits
from course.exercise import StudentWork


class OpenBox(Box):
    """Answers from this process."""

    def __init__(self, source: str, name: str, limits: BoxLimits) -> None:
        self._name, self._limits, self.said, self.protection = name, limits, "", ()
        random.seed(1)  # as inside.py is told
        try:
            self._loaded = inside.Loaded(name, source)
        except Exception as error:
            raise BoxError(self._told(inside.error_entry(error, name, ""))) from None

    def _exchange(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = self._loaded.answer(json.loads(json.dumps(request)))
        try:
            answer = json.loads(inside.written(answer, ""))
        except (TypeError, ValueError) as error:
            answer = {"error": inside.error_entry(error, self._name, str(request["calls"][-1][0]).lstrip("?"))}
        if "error" in answer:
            raise BoxError(self._told(answer["error"]))
        return dict(answer)

    def close(self) -> None:
        """Nothing was started."""


class OpenWork(StudentWork):
    """Work whose code is trusted."""

    @contextmanager
    def box(self, limits: BoxLimits | None = None) -> Iterator[Box]:
        yield OpenBox(self.source, self.path.name, limits or BoxLimits())
