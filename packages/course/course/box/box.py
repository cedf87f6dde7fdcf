"""The box from outside: starts the process, sends requests, waits with a limit, and reads answers with suspicion."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.box import filter as calls
from course.writable import writable

INSIDE = Path(__file__).with_name("inside.py")
ANSWER_BYTES_MAX = 1 << 20
SOURCE_BYTES_MAX = 64 << 10
END_S = 2.0
"""The time that a process with a closed pipe has to end."""
PRINTED_MAX = 1000
"""Characters of a box's output that a reader is shown."""


class BoxError(RuntimeError):
    """The student's code failed: an exception, a limit, or an answer of the wrong form.

    The message names the line where there is one, and is meant for the student.
    """


class LoadError(BoxError):
    """The code could not be loaded, so that every other test would end here as well."""


@dataclass(frozen=True, slots=True)
class BoxLimits:
    """`answer_s` is the time for one request on the wall clock, `processor_s` for all of them together."""

    memory_bytes: int = 256 << 20
    processor_s: int = 40
    answer_s: float = 10.0

    def table(self) -> dict[str, int]:
        """By the names of setrlimit(2). No file can be written, and none opened beside the pipes."""
        return {"AS": self.memory_bytes, "CPU": self.processor_s, "FSIZE": 0, "CORE": 0, "NOFILE": 8}


class Box:
    """A student's module in its process. Objects are numbers; 0 is the module itself."""

    def __init__(self, source: str, name: str, limits: BoxLimits) -> None:
        if len(source.encode(errors="replace")) > SOURCE_BYTES_MAX:
            raise LoadError(f"{name} must have at most {SOURCE_BYTES_MAX} bytes (got {len(source.encode())})")
        self._name = name
        self._limits = limits
        self._rest = b""
        self.said = ""
        self.protection: tuple[str, ...] = ()
        self._process = subprocess.Popen(
            [sys.executable, "-s", "-S", "-P", "-B", str(INSIDE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYTHONHASHSEED": "0", "PATH": "/usr/bin:/bin"},
            start_new_session=True,
        )
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        program = calls.program()
        table = limits.table()
        try:
            first = {"source": source, "name": name, "seed": 1, "filter": program, "limits": table}
            answer = self._exchange(first)
        except BoxError as error:
            self.close()
            raise LoadError(str(error)) from None
        except BaseException:
            self.close()
            raise
        protection = answer.get("protection")
        self.protection = tuple(str(word) for word in protection) if isinstance(protection, list) else ()

    def make(self, kind: str, *arguments: Any, watch: Sequence[str] = ()) -> tuple[int, dict[str, Any]]:
        """A new object of one of the module's classes: its number and the watched attributes."""
        answer = self._exchange({"object": 0, "calls": [[kind, arguments]], "watch": list(watch), "keep": True})
        number = answer.get("value")
        if type(number) is not int or number < 1:
            raise BoxError(f"{self._name}: answers have been tampered with")
        return number, self._watched(answer)

    def call(self, method: str, *arguments: Any, of: int = 0) -> Any:
        """The value that a function of the module, or a method of an object, returns."""
        return self.tell([(method, arguments)], of)[0]

    def tell(
        self, events: Sequence[tuple[str, Sequence[Any]]], of: int, watch: Sequence[str] = ()
    ) -> tuple[Any, dict[str, Any]]:
        """Call several methods, one after the other: the last one's value and the watched attributes after it.

        A method whose name begins with "?" may be missing.
        """
        pairs = [[method, list(arguments)] for method, arguments in events]
        answer = self._exchange({"object": of, "calls": pairs, "watch": list(watch)})
        return answer.get("value"), self._watched(answer)

    @staticmethod
    def _watched(answer: dict[str, Any]) -> dict[str, Any]:
        watched = answer.get("watched")
        return watched if isinstance(watched, dict) else {}

    def _exchange(self, request: dict[str, Any]) -> dict[str, Any]:
        """One request and its answer. BoxError for an error in the box, a limit, or nonsense."""
        until = time.monotonic() + self._limits.answer_s
        try:
            self._send(json.dumps(request).encode() + b"\n", until)
        except (OSError, ValueError):  # ValueError: the pipe was closed after a limit
            raise self._ended() from None
        try:
            answer = writable(json.loads(self._line(until).decode()))
        except (ValueError, RecursionError):
            raise BoxError(f"{self._name}: answers have been tampered with") from None
        if not isinstance(answer, dict):
            raise BoxError(f"{self._name}: answers have been tampered with")
        self.said = (self.said + str(answer.get("said", "")))[-8000:]
        if "error" in answer:
            raise BoxError(self._told(answer["error"]))
        return answer

    def _send(self, text: bytes, until: float) -> None:
        """Write a request, and read meanwhile: code that writes without being asked would fill the other pipe, and
        then neither side would go on."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        left = memoryview(text)
        while left:
            readable, ready, _ = select.select([answers], [requests], [], max(0.0, until - time.monotonic()))
            if not readable and not ready:
                raise self._late()
            if readable:
                self._receive()
            if ready:
                left = left[os.write(requests.fileno(), left) :]

    def _line(self, until: float) -> bytes:
        answers = self._process.stdout
        assert answers is not None
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([answers], [], [], left)[0]:
                raise self._late()
            self._receive()
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _receive(self) -> None:
        """Take in what the process has written. It must have written something, or be gone."""
        pipe = self._process.stdout
        assert pipe is not None
        block = os.read(pipe.fileno(), 1 << 16)
        if not block:
            raise self._ended()
        self._rest += block
        if len(self._rest) > ANSWER_BYTES_MAX:
            self.close()
            raise BoxError(f"{self._name}: an answer must have at most {ANSWER_BYTES_MAX} bytes")

    def _late(self) -> BoxError:
        self.close()
        return BoxError(f"{self._name}: no answer within {self._limits.answer_s:g} s: a loop that doesn't end?")

    def _ended(self) -> BoxError:
        """The cause why a pipe of the process has ended. The process is gone afterwards."""
        try:
            status = self._process.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            self.close()
            return BoxError(f"{self._name}: your code must leave its pipes alone: it closed one and went on")
        if status == -signal.SIGXCPU or status == -signal.SIGKILL:
            cause = f"it used more than {self._limits.processor_s} s of processor time"
        elif status < 0:
            cause = f"it was ended by {signal.Signals(-status).name}"
        else:
            cause = f"it ended by itself, with status {status}"
        return BoxError(f"{self._name}: the process of your code is gone: {cause}")

    def _told(self, error: object) -> str:
        """An error of the student's code as a sentence."""
        details = error if isinstance(error, dict) else {}
        kind, message = str(details.get("type", "error")), str(details.get("message", ""))
        line = f":{details['line']}" if type(details.get("line")) is int else ""
        text = f" in `{details['text']}`" if details.get("text") else ""
        method = f" (called: {details['method']})" if details.get("method") else ""
        note = ""
        if kind == "MemoryError":
            message = f"more than {self._limits.memory_bytes >> 20} MiB of memory"
        elif kind == "PermissionError":
            note = "; a lab's code can't open files, sockets or processes"
        return f"{self._name}{line}: {kind}: {message}{text}{method}{note}"

    def close(self) -> None:
        """End the process and everything that it might have started."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


@contextmanager
def opened(source: str, name: str, limits: BoxLimits, protection: set[str], printed: list[str]) -> Iterator[Box]:
    """A box that is closed at the end. Its protections are added to the set, the end of its output to the list."""
    box = Box(source, name, limits)
    protection.update(box.protection)
    try:
        yield box
    finally:
        if box.said:
            printed.append(box.said[-PRINTED_MAX:])
        box.close()
