"""The bench: a student's P4 file holds controls only, and is compiled once per check."""

from pathlib import Path

import pytest

from course.bench import bench
from course.box.box import BoxError
from course.catalogue import find
from course.exercise import StudentWork
from p4c.model import Program

HOP = find("hop")
AROUND = "around_hop.p4"


def work(folder: Path, source: str) -> StudentWork:
    return StudentWork(source, folder / HOP.file, 1, folder / "checked")


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
        bench.compiled(work(tmp_path, before.format(secret=secret) + HOP.starter(1)), AROUND)
    assert "secret words" not in str(raised.value)


def test_signs_of_a_directive_in_comments_are_allowed(tmp_path: Path) -> None:
    source = "// #include x\n/* a\n# define b\n*/\r\n" + HOP.starter(1)
    assert isinstance(bench.compiled(work(tmp_path, source), AROUND), Program)


def test_a_compilation_that_takes_too_long_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def late(path: Path, includable: frozenset[Path]) -> Program:
        tries.append(path)
        raise BoxError("compiling took more than 20 s")

    monkeypatch.setattr(bench, "read_program", late)
    own = work(tmp_path, HOP.starter(1))
    for _ in range(2):
        with pytest.raises(BoxError, match="compiling took more than 20 s"):
            bench.compiled(own, AROUND)
    assert len(tries) == 1
