"""The process around a student's code. A file that stands alone: it is run, never imported, and knows no module of the
lab. It gives up what the student's code must not have, loads the code, and answers requests, a JSON line each.

A request is {"object", "calls": [[method, arguments]…], "watch": [attribute…]}; object 0 is the module. The answer
holds the last call's value and the watched attributes, or an error with the line that raised.
"""

import contextlib
import ctypes
import io
import json
import linecache
import os
import resource
import signal
import struct
import sys
import types
from collections.abc import Callable
from typing import Any, BinaryIO

# Everything that a solution may import has to be here before files are out of reach.
ALLOWED = (
    "__future__", "abc", "array", "base64", "binascii", "bisect", "collections", "collections.abc", "contextlib",
    "copy", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "heapq", "ipaddress", "itertools",
    "json", "math", "numbers", "operator", "random", "re", "statistics", "string", "struct", "textwrap", "time",
    "typing", "types",
)  # fmt: skip
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 1, 4, 22, 38, 2
NO_ONE = 65534  # the user and group that own nothing
SAID_MAX = 8_000


class Said(io.TextIOBase):
    """The output of the student's code: the last characters are kept."""

    def __init__(self) -> None:
        self.text = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text = (self.text + str(text))[-SAID_MAX:]
        return len(text)

    def take(self) -> str:
        text, self.text = self.text, ""
        return text


def give_up(limits: dict[str, int], program: list[list[int]] | None) -> list[str]:
    """Rights that the student's code must not have; the words for what is in force."""
    libc = ctypes.CDLL(None, use_errno=True)
    done = []
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.chdir("/")
    for what, value in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{what}"), (value, value))
    done += ["memory", "processor time", "file size"]
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            os.setgroups([])
            os.setresgid(NO_ONE, NO_ONE, NO_ONE)
            os.setresuid(NO_ONE, NO_ONE, NO_ONE)
            done.append("another user")
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # a change of user clears it
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    if program is not None and libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
        packed = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
        memory = ctypes.create_string_buffer(packed, len(packed))
        filters = ctypes.create_string_buffer(struct.pack("HP", len(program), ctypes.addressof(memory)))
        if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filters), 0, 0) == 0:
            done.append("system calls")
    return done


def refusing(name: str, *rest: Any, _import: Callable[..., Any] = __import__, **named: Any) -> Any:
    """Import of what is loaded already; a clear error for the rest."""
    if name.partition(".")[0] not in ROOTS:
        raise ImportError(f"{name} can't be imported in a lab; these can: {', '.join(sorted(ROOTS))}")
    return _import(name, *rest, **named)


ROOTS = {name.partition(".")[0] for name in ALLOWED}


def plain(value: Any) -> Any:
    """Values that JSON has no form for: sets become sorted lists, addresses texts; anything else is an error."""
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if type(value).__module__ == "ipaddress":
        return str(value)
    raise TypeError(f"it must return numbers, texts, lists or dictionaries (got a {type(value).__name__})")


def error_entry(error: BaseException, name: str, method: str) -> dict[str, Any]:
    """An exception with the last line of the student's file that it went through."""
    line, at = None, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == name:
            line = at.tb_lineno
        at = at.tb_next
    if isinstance(error, SyntaxError) and error.filename == name:
        line = error.lineno
    return {
        "type": type(error).__name__,
        "message": (error.msg if isinstance(error, SyntaxError) else str(error))[:2000],
        "line": line,
        "text": linecache.getline(name, line).strip()[:200] if line else "",
        "method": method,
    }


class Loaded:
    """The student's code, loaded as a module. Errors of the code leave `__init__` as they are."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        module = types.ModuleType("student")
        module.__dict__["__builtins__"] = {**vars(__import__("builtins")), "__import__": refusing}
        sys.modules["student"] = module
        self.objects: list[Any] = [module]
        exec(compile(source, name, "exec"), module.__dict__)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request."""
        method = ""
        try:
            target, value, made = self.objects[request["object"]], None, None
            for method, arguments in request["calls"]:
                optional = method.startswith("?")
                method = method.lstrip("?")
                function = getattr(target, method, None)
                if function is None and optional:
                    continue
                if function is None:
                    owner = "your file" if target is self.objects[0] else f"class {type(target).__name__}"
                    raise AttributeError(f"{owner} must have {method!r}")
                value = function(*arguments)
            if request.get("keep"):
                self.objects.append(value)
                value, made = len(self.objects) - 1, self.objects[-1]
            watched = {key: getattr(target if made is None else made, key) for key in request["watch"]}
            return {"value": value, "watched": watched}
        except BaseException as error:
            return {"error": error_entry(error, self.name, method)}


def written(answer: dict[str, Any], said: str) -> str:
    """An answer as a line of JSON. ValueError or TypeError for values that JSON has no form for."""
    return json.dumps({**answer, "said": said}, default=plain, allow_nan=False)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Load the student's code from the first request; then answer until the requests end."""
    said = Said()
    first = json.loads(requests.readline())
    for module in ALLOWED:
        __import__(module)
    import random

    random.seed(first["seed"])
    done = give_up(first["limits"], first["filter"])
    sys.stdout = sys.stderr = said

    def reply(answer: dict[str, Any]) -> None:
        answers.write(written(answer, said.take()).encode() + b"\n")
        answers.flush()

    try:
        loaded = Loaded(first["name"], first["source"])
    except BaseException as error:
        reply({"error": error_entry(error, first["name"], "")})
        return
    reply({"value": None, "protection": done})
    for line in requests:
        request = json.loads(line)
        answer = loaded.answer(request)
        try:
            reply(answer)
        except BaseException as error:
            calls = request["calls"]
            reply({"error": error_entry(error, loaded.name, calls[-1][0].lstrip("?") if calls else "")})


if __name__ == "__main__":
    with open(0, "rb", closefd=False) as requests, open(os.dup(1), "wb") as answers:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        serve(requests, answers)
