"""A check: whatever the worker does, the caller gets a result; a student's P4 file is compiled once."""

import hashlib
import sys
from pathlib import Path

import pytest

from cli.main import main
from course import checking
from course.bench import bench
from course.box.box import SOURCE_BYTES_MAX, BoxError
from course.catalogue import find
from course.exercise import StudentWork
from course.student import Student

USIDS, HOP = find("usids"), find("hop")
REFERENCES = Path(__file__).parent / "references"


@pytest.mark.parametrize("said", ["", "[]", '{"tests": []}', "[" * 100_000])
def test_an_answer_that_cannot_be_read_is_a_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setattr(checking, "python", lambda *_: [sys.executable, "-c", f"print({said!r})"])
    result = checking.check(USIDS, tmp_path / USIDS.file, "x = 1\n", Student("anna"), tmp_path / "checked")
    assert result.status == 2
    assert "the check must answer with a result" in result.trouble


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch, capsys) -> None:
    large = tmp_path / USIDS.file
    with large.open("wb") as file:
        file.write(b"the text")
        file.truncate(1 << 40)  # no machine can hold it
    monkeypatch.setattr(checking, "python", lambda *_: pytest.fail("no process is needed"))
    results = tmp_path / "results.json"
    words = ["--folder", str(tmp_path / "mylab"), "--results", f"gradescope={results}"]
    (tmp_path / "mylab").mkdir()
    assert main(["check", "1", str(large), *words]) == 2
    assert f"must have at most {SOURCE_BYTES_MAX} bytes (got {1 << 40})" in " ".join(capsys.readouterr().out.split())
    assert "must have at most" in results.read_text()
    assert "the text" not in (tmp_path / "mylab" / "checked" / "usids" / "page.html").read_text()


def test_a_check_and_its_page_have_the_text_that_was_read(tmp_path: Path) -> None:
    (tmp_path / USIDS.file).write_bytes(b"x = '\xff\n")
    source = checking.read(tmp_path / USIDS.file)
    assert source == "x = '\ufffd\n"
    (tmp_path / USIDS.file).write_text("another text, written meanwhile\n")
    result = checking.check(USIDS, tmp_path / USIDS.file, source, Student("anna"), tmp_path / "checked")
    assert result.digest == hashlib.sha256(source.encode()).hexdigest()


def many_registers(count: int, size: int) -> str:
    """Lab 2's reference with registers that the first packet writes to."""
    text = (REFERENCES / HOP.file).read_text()
    arrays = "\n".join(f"    register<bit<64>>({size}) r{n};" for n in range(count))
    writes = "\n".join(f"        r{n}.write({size - 1}, 1);" for n in range(count))
    head, _, rest = text.partition("{\n")
    before, _, body = rest.rpartition("    apply {\n")
    return f"{head}{{\n{arrays}\n{before}    apply {{\n{writes}\n{body}"


def test_a_program_above_the_memory_of_a_program_is_told_so(tmp_path: Path) -> None:
    """It is the student's mistake, with the sum and the largest parts, and not the machine's."""
    source = many_registers(60, 1 << 24)
    result = checking.check(HOP, tmp_path / HOP.file, source, Student("anna"), tmp_path / "checked")
    assert (result.status, result.trouble) == (1, "")
    told = result.tests[0].outcome.happened
    assert "must take at most 268435456 bytes (got 80530" in told
    assert "the largest: register" in told


def test_the_largest_program_is_checked_in_the_memory_of_its_worker(tmp_path, monkeypatch) -> None:
    """In half of it, and as each test has a switch to itself, in less than all their registers would take."""
    monkeypatch.setattr(checking, "P4_MEMORY_BYTES", checking.P4_MEMORY_BYTES // 2)
    source = many_registers(60, 550_000)
    result = checking.check(HOP, tmp_path / HOP.file, source, Student("anna"), tmp_path / "checked")
    assert (result.status, result.trouble) == (0, "")


def test_a_check_that_needs_more_memory_than_it_may_have_says_so(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(checking, "P4_MEMORY_BYTES", 64 << 20)
    bomb = "import sys; sys.stdin.read(); bytearray(1 << 30)"
    monkeypatch.setattr(checking, "python", lambda *_: [sys.executable, "-c", bomb])
    result = checking.check(HOP, tmp_path / HOP.file, "", Student("anna"), tmp_path / "checked")
    assert result.trouble == "the check needed more than the 64 MiB of memory that it may have"


HOP_LAB = find("hop")
AROUND = "around_hop.p4"


def work(folder: Path, source: str) -> StudentWork:
    return StudentWork(source, folder / HOP_LAB.file, 1, folder / "checked")


@pytest.mark.parametrize(
    "before",
    [
        '#include "{secret}"\n',
        '// x\r#include "{secret}"\r\n',
        '/**/ #include "{secret}"\n',
        '/* two\nlines */ #include "{secret}"\n',
        '\f#include "{secret}"\n',
        '\\\n#include "{secret}"\n',
        "# include <{secret}>\n",
    ],
)
def test_a_students_program_includes_no_file_of_the_grader(tmp_path: Path, before: str) -> None:
    secret = tmp_path / "secret.p4"
    secret.write_text("the secret words\n")
    with pytest.raises(BoxError, match=r"hop\.p4:\d+: #include can't be used in a lab") as raised:
        bench.compiled(work(tmp_path, before.format(secret=secret) + HOP_LAB.starter(1)), AROUND)
    assert "secret words" not in str(raised.value)


def test_signs_of_a_directive_in_comments_are_allowed_and_warnings_are_not(tmp_path: Path) -> None:
    source = "// #include x\n/* a\n# define b\n*/\r\n" + HOP_LAB.starter(1)
    with pytest.raises(BoxError, match=r"(?s)never applied.*warnings are errors in a lab$"):
        bench.compiled(work(tmp_path, source), AROUND)


def test_a_compilation_that_takes_too_long_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def late(path: Path, includable: frozenset[Path]) -> None:
        tries.append(path)
        raise BoxError("compiling took more than 20 s")

    monkeypatch.setattr(bench, "compile_program", late)
    own = work(tmp_path, HOP_LAB.starter(1))
    for _ in range(2):
        with pytest.raises(BoxError, match="compiling took more than 20 s"):
            bench.compiled(own, AROUND)
    assert len(tries) == 1
