"""The box: a student's code can compute and answer; everything else is refused, and the grader goes on."""

import os
import re
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from common.linux import bpf
from course.box import box as box_module, filter as calls
from course.box.box import ANSWER_BYTES_MAX, Box, BoxError, BoxLimits
from course.catalogue import find
from course.exercise import StudentWork, Test
from course.result import TestOutcome
from course.worker import carry_out
from tests.course.open_box import OpenBox

FULL = {"memory", "processor time", "file size", "system calls"}


def asked(source: str, method: str = "f", limits: BoxLimits | None = None) -> object:
    with closing(Box(source, "mine.py", limits or BoxLimits(answer_s=20.0))) as box:
        assert set(box.protection) >= FULL
        return box.call(method)


def test_answers_come_back_and_objects_keep_their_state() -> None:
    text = "class C:\n    def __init__(self, n): self.n = n\n    def add(self, m): self.n += m; return self.n\n"
    with closing(Box(text, "c.py", BoxLimits())) as box:
        number, watched = box.make("C", 3, watch=("n",))
        assert watched == {"n": 3}
        assert box.call("add", 4, of=number) == 7
        assert box.tell([("add", [1]), ("?missing", [1]), ("add", [1])], number, ("n",)) == (9, {"n": 9})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("open('/etc/passwd')", "mine.py:2: PermissionError"),
        ("open('/tmp/written', 'w')", "PermissionError"),
        ("import socket", "socket can't be imported in a lab"),
        ("__builtins__['__import__'].__globals__['os'].fork()", "PermissionError"),
        ("__builtins__['__import__'].__globals__['os'].kill(1, 9)", "PermissionError"),
        ("bytearray(1 << 40)", "more than 256 MiB of memory"),
        ("[0] * (1 << 26)", "more than 256 MiB of memory"),
        ("raise SystemExit(0)", "SystemExit"),
        ("return object()", "must return numbers, texts"),
        ("return float('nan')", "JSON compliant"),
        ("f()", "RecursionError"),
        ("return 'x' * (2 << 20)", f"at most {ANSWER_BYTES_MAX} bytes"),
        ("1 / 0", "mine.py:2: ZeroDivisionError: division by zero in `1 / 0`"),
    ],
)  # fmt: skip
def test_a_line_of_a_student_is_contained(body: str, message: str) -> None:
    with pytest.raises(BoxError, match=message):
        asked(f"def f():\n    {body}\n")
    assert not Path("/tmp/written").exists()


def test_a_process_that_ends_or_never_answers_is_noticed() -> None:
    with pytest.raises(BoxError, match="is gone: it ended by itself, with status 5"):
        asked("def f():\n    __builtins__['__import__'].__globals__['os']._exit(5)\n")
    began_s = time.monotonic()
    with pytest.raises(BoxError, match=r"no answer within 0\.5 s: a loop"):
        asked("def f():\n    while True: pass\n", limits=BoxLimits(answer_s=0.5))
    assert time.monotonic() - began_s < 10


def test_answers_that_are_forged_are_noticed() -> None:
    """One of these numbers is the pipe's; the others lead nowhere."""
    found = {number: forged(number) for number in (3, 4, 5)}
    assert any("tampered" in one for one in found.values())
    assert all(re.search("tampered|Bad file|^1$", one) for one in found.values()), found


FORGING = """
import contextlib
def f():
    for number in (3, 4, 5):  # one of them is the pipe
        with contextlib.suppress(OSError):
            contextlib.os.write(number, b'{"value": 1}\\n')
    while True:
        for number in (3, 4, 5) if %r else ():
            with contextlib.suppress(OSError):
                contextlib.os.write(number, b"x" * 4096)
"""


@pytest.mark.parametrize(
    ("writes", "message"), [(True, f"at most {ANSWER_BYTES_MAX} bytes"), (False, r"no answer within 0\.5 s")]
)
def test_a_process_that_takes_no_request_is_noticed_while_it_is_written(writes: bool, message: str) -> None:
    """The request is longer than a pipe holds."""
    with closing(Box(FORGING % writes, "mine.py", BoxLimits(processor_s=5, answer_s=20.0))) as box:
        assert box.call("f") == 1
        if not writes:
            box._limits = replace(box._limits, answer_s=0.5)  # loading may take longer
        with pytest.raises(BoxError, match=message):
            box.call("f", "a" * 300_000)


def forged(number: int) -> str:
    write = "__builtins__['__import__'].__globals__['os'].write"
    try:
        return str(asked(f"def f():\n    {write}({number}, b'nonsense\\n' * 3)\n    return 1\n"))
    except BoxError as error:
        return str(error)


def test_syntax_errors_name_the_line() -> None:
    with pytest.raises(BoxError, match=r"mine.py:2: SyntaxError"):
        Box("x = 1\ny = (\n", "mine.py", BoxLimits())


ANSWERS = """
class C:
    def __init__(self, n): self.n = n
    def add(self, m): self.n += m; return {3, 1, self.n}
    def fail(self): return 1 / (self.n - self.n)
    def odd(self): return object()
    def nan(self): return float("nan")
"""


@pytest.mark.parametrize("method", ["add", "fail", "odd", "nan", "missing"])
def test_an_open_box_answers_as_the_box_does(method: str) -> None:
    def said(kind: type[Box]) -> object:
        with closing(kind(ANSWERS, "c.py", BoxLimits())) as box:
            try:
                number, _ = box.make("C", 2, watch=("n",))
                return box.tell([("?none", []), (method, [4] if method == "add" else [])], number, ("n",))
            except BoxError as error:
                return str(error)

    assert said(OpenBox) == said(Box)
    assert said(OpenBox) == ([1, 3, 6], {"n": 6}) or method != "add"


def test_a_file_that_does_not_load_is_tried_once_and_output_is_kept(tmp_path: Path) -> None:
    def work(source: str) -> StudentWork:
        return StudentWork(source, tmp_path / "mine.py", 1, tmp_path)

    def run(work: StudentWork) -> TestOutcome:
        with work.box() as box:
            return TestOutcome(True, "", str(box.call("f")))

    lab = replace(find("usids"), tests=(Test("one", "", 1, run), Test("two", "", 1, run)))
    found = carry_out(lab, work("import os\n"))
    assert [test.outcome.happened for test in found] == [found[0].outcome.happened] * 2
    assert found[1].seconds == 0
    printing = carry_out(lab, work("def f():\n    print('hello')\n    return 1\n"))
    assert [test.printed for test in printing] == ["hello\n", "hello\n"]


def test_no_process_is_left() -> None:
    box = Box("def f(): pass\n", "mine.py", BoxLimits())
    process = box._process.pid
    box.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.parametrize("machine", calls.CALLS)
def test_the_filter_allows_its_calls_and_refuses_the_rest(machine: str) -> None:
    program = calls.program(machine)
    assert program is not None

    def verdict(number: int, architecture: int) -> int:
        # `bpf.run` reads as the network does, so the words are given in that order.
        return bpf.run(program, number.to_bytes(4, "big") + architecture.to_bytes(4, "big"))

    own = calls.ARCHITECTURES[machine]
    for number in range(500):
        expected = calls.ALLOW if number in calls.CALLS[machine].values() else calls.REFUSE
        assert verdict(number, own) == expected
    assert verdict(0x40000000, own) == calls.REFUSE  # the x32 interface
    assert verdict(0, 0x40000003) == calls.KILL  # a 32-bit process


def test_dangerous_calls_are_on_no_list() -> None:
    names = {name for listed in calls.CALLS.values() for name in listed}
    for name in ("open", "openat", "socket", "clone", "fork", "execve", "kill", "ptrace", "prctl", "process_vm_readv"):
        assert name not in names


def test_code_that_closes_its_answers_and_waits_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_module, "END_S", 0.1)
    source = "import contextlib\ndef f():\n    for n in range(3, 9):\n        with contextlib.suppress(OSError):\n"
    source += "            contextlib.os.close(n)\n    contextlib.os.read(0, 1 << 20)\n"
    with pytest.raises(BoxError, match="it closed one and went on"):
        asked(source)


@pytest.mark.parametrize(
    "body", [r"raise ValueError('\ud800 hello')", r"print('\ud800 hello')", r"return {'\udfff': ['\ud800']}"]
)
def test_texts_of_the_code_can_be_written_to_a_file(body: str) -> None:
    with closing(Box(f"def f():\n    {body}\n", "mine.py", BoxLimits())) as box:
        try:
            found = str(box.call("f"))
        except BoxError as error:
            found = str(error)
    assert (found + box.said).encode().count(b"?") == body.count(r"\ud")
