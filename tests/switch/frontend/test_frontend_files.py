"""The preprocessor, and the files that it reads: which, how much of them, and for whom."""

import contextlib
import os
import socket
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from p4c.frontend import CompileError, compile_program
from p4c.frontend.cache import SOURCE_BYTES_MAX
from p4c.frontend.compilation import Compilation
from p4c.frontend.diagnostics import Diagnostics
from p4c.frontend.parse.lexer import TOKENS_MAX, integer, tokenize
from p4c.frontend.parse.preprocessor import STANDARD_INCLUDE, Preprocessor
from p4c.frontend.parse.tokens import PLACE
from tests.helpers.p4.around import around

MB = 1_000_000


def program(folder: Path, parts: str) -> Path:
    """A whole program, which needs `A` from its parts."""
    folder.mkdir(exist_ok=True)
    path = folder / "main.p4"
    body = around(parts, "", "state start { transition accept; }", "meta.a = A;", meta="bit<8> a;")
    path.write_text(body)
    return path


def refused(path: Path, *folders: Path) -> str:
    with pytest.raises(CompileError) as caught:
        Compilation(path, folders).run()
    return str(caught.value)


# --- kinds of files ---------------------------------------------------------------------------------------------------


def make(kind: str, path: Path) -> str:
    """A file of that kind at `path`, or the path of one that every machine has."""
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    else:
        return {"device": "/dev/zero", "process": "/proc/self/maps"}[kind]
    return str(path)


@pytest.mark.parametrize("kind", ["FIFO", "socket", "device", "process"])
def test_only_regular_files_are_included(kind: str, tmp_path: Path) -> None:
    """A FIFO makes a reader wait for its writer, and /proc/kmsg, by its mode a regular file, for the kernel."""
    name = make(kind, tmp_path / "odd")
    assert f"cannot read {name}: must be a" in refused(program(tmp_path, f'#include "{name}"'))


def test_a_program_itself_is_a_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "main.p4")
    assert "must be a regular file (it is a FIFO)" in refused(tmp_path / "main.p4")


def test_a_folder_of_that_name_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "main" / "a.p4").mkdir(parents=True)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.p4").write_text("#define A 1\n")
    assert Compilation(program(tmp_path / "main", '#include "a.p4"'), [tmp_path / "more"]).run().json["actions"]


def test_a_link_to_a_regular_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.p4").write_text("#define A 1\n")
    (tmp_path / "a.p4").symlink_to("real.p4")
    assert Compilation(program(tmp_path, '#include "a.p4"')).run().json["actions"]


def test_a_known_result_does_not_wait_for_what_has_taken_the_place_of_a_file(tmp_path: Path) -> None:
    path = program(tmp_path, '#include "a.p4"')
    (tmp_path / "a.p4").write_text("#define A 1\n")
    compile_program(path, tmp_path / "cache")
    (tmp_path / "a.p4").unlink()
    os.mkfifo(tmp_path / "a.p4")
    with pytest.raises(CompileError, match="must be a regular file"):
        compile_program(path, tmp_path / "cache")


# --- what only root may read ------------------------------------------------------------------------------------------

SECRET = "admin:$6$salt$hash:19000\n"


@pytest.fixture
def public() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.mark.skipif(os.geteuid() != 0, reason="the others may read what they name")
@pytest.mark.parametrize("linked", [False, True])
def test_root_is_shown_no_line_of_a_file_that_others_may_not_read(linked: bool, public: Path) -> None:
    """A program may come from another person, and its messages go back there."""
    (public / "shadow").write_text(SECRET)
    (public / "shadow").chmod(0o640)
    name = "a.p4" if linked else str(public / "shadow")
    path = program(public / "theirs", f'#include "{name}"\n#define A 1')
    if linked:
        (public / "theirs" / "a.p4").symlink_to(public / "shadow")
    said = refused(path)
    assert "shadow:1:1: error" in said or "a.p4:1:1: error" in said
    assert "No line of it is shown" in said
    assert not [word for word in ("admin", "$", "salt", "hash", "19000") if word in said.replace(str(public), "")]


@pytest.mark.skipif(os.geteuid() != 0, reason="the others may read what they name")
@pytest.mark.parametrize("why", ["public", "included", "beside", "not root"])
def test_other_files_are_shown_as_ever(why: str, public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = public / ("theirs" if why == "beside" else "far")
    folder.mkdir()
    (folder / "a.p4").write_text("const bit<8> q = ;\n")
    (folder / "a.p4").chmod(0o644 if why == "public" else 0o600)
    path = program(public / "theirs", f'#include "{folder / "a.p4"}"\n#define A 1')
    if why == "not root":
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "const bit<8> q = ;" in refused(path, *([folder] if why == "included" else []))


@pytest.mark.skipif(os.geteuid() != 0, reason="the others may read what they name")
@pytest.mark.parametrize(
    ("folder", "file", "shown"),
    [
        ((12345, 0, 0o755), (0, 0, 0o600), False), ((12345, 0, 0o755), (0, 0, 0o644), True),
        ((12345, 0, 0o755), (12345, 0, 0o600), True), ((0, 12345, 0o775), (0, 0, 0o640), False),
        ((0, 12345, 0o775), (0, 12345, 0o640), True), ((0, 0, 0o1777), (0, 0, 0o600), False),
        ((12345, 0, 0o777), (12345, 0, 0o600), False), ((0, 0, 0o755), (12345, 0, 0o600), True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("below", [False, True])
def test_a_secret_beside_a_program_is_shown_only_if_all_who_may_write_there_may_read_it(
    folder: tuple[int, int, int], file: tuple[int, int, int], shown: bool, below: bool, public: Path
) -> None:
    """The author of a program may be each of those. A folder below hides what a file's mode opens."""
    name = "below/a.p4" if below else "a.p4"
    path = program(public / "theirs", f'#include "{name}"\n#define A 1')
    secret = public / "theirs" / name
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("const bit<8> q = ;\n")
    for place, (user, group, mode) in ((secret, file), (public / "theirs", folder)):
        os.chown(place, user, group)
        place.chmod(mode)
    if below:
        os.chown(secret.parent, *file[:2])
        secret.parent.chmod(file[2] | (file[2] & 0o444) >> 2)
        secret.chmod(0o644)
    assert ("const bit<8> q = ;" in refused(path)) == shown


# --- how much ----------------------------------------------------------------------------------------------------

TEXTS = {
    "a long annotation": lambda size: f'@name("{"a" * size}") action n() {{ }}',
    "escapes": lambda size: '@name("' + "\\a" * (size // 2) + '") action n() { }',
    "an open string": lambda size: '"' + "a" * size,
    "spaces": lambda size: " " * size,
    "lines": lambda size: "\n" * size,
    "continued lines": lambda size: "\\\n" * (size // 2),
    "line comments": lambda size: "//\n" * (size // 3),
    "a comment": lambda size: f"/*{'*' * size}*/",
    "a name": lambda size: "a" * size,
    "a number": lambda size: "9" * size,
    "odd characters": lambda size: "$" * size,
}
DENSE = {
    "signs": lambda size: ";" * size,
    "braces": lambda size: "{" * size,
    "names": lambda size: "abc " * (size // 4),
    "short lines": lambda size: "ab\n" * (size // 3),
    "conditionals": lambda size: "#ifndef B\n" * (size // 10),
    "what is not read": lambda size: "#if 0\n" + ";" * size + "\n#endif",
    "a macro's text": lambda size: "#define B " + "a " * (size // 2),
}


def cost(path: Path) -> int:
    """Of a compilation, however it ends: the most bytes at once."""
    tracemalloc.start()
    try:
        Compilation(path).run()
    except CompileError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", [3 * MB // 8, SOURCE_BYTES_MAX // 8 - 10_000], ids=["too long", "just not too long"])
def test_a_source_costs_at_most_ten_times_its_size(text, size, tmp_path, monkeypatch) -> None:
    """Of an eighth of the size that is allowed: counting each byte of a longer one takes a minute."""
    monkeypatch.setattr("p4c.frontend.parse.preprocessor.SOURCE_BYTES_MAX", SOURCE_BYTES_MAX // 8)
    path = program(tmp_path, "#define A 1\n")
    cost(path)  # what is made once for all programs
    program(tmp_path, TEXTS[text](size) + "\n#define A 1\n")
    assert cost(path) < 10 * size + MB // 4  # any program takes some


@pytest.mark.slow
@pytest.mark.parametrize("text", DENSE)
def test_a_source_full_of_tokens_costs_at_most_ten_times_its_size(text, tmp_path, monkeypatch) -> None:
    """All limits are a sixteenth of the real ones."""
    size = SOURCE_BYTES_MAX // 16 - 10_000
    monkeypatch.setattr("p4c.frontend.parse.preprocessor.SOURCE_BYTES_MAX", SOURCE_BYTES_MAX // 16)
    monkeypatch.setattr("p4c.frontend.parse.preprocessor.TOKENS_MAX", TOKENS_MAX // 16)
    monkeypatch.setattr("p4c.frontend.parse.preprocessor._DIRECTIVE_TOKENS_MAX", 20_000 // 16)
    path = program(tmp_path, "#define A 1\n")
    cost(path)
    path.write_text(DENSE[text](size))
    assert cost(path) < 10 * size + MB // 4


STATEMENTS = {"assignments": "meta.a = meta.a + 1;", "blocks": "{}", "nothing": ";", "calls": "n();"}


@pytest.mark.slow
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_program_that_is_compiled_costs_at_most_600_bytes_per_token(statement: str, tmp_path: Path) -> None:
    """docs/security.md has the product with TOKENS_MAX. Assignments are the dearest that was found."""
    path = program(tmp_path, "#define A 1\naction n() { }")
    cost(path)
    read = Compilation(path)
    path.write_text(path.read_text().replace("meta.a = A;", STATEMENTS[statement] * 1000))
    read.read()
    assert cost(path) < 600 * len(read.tokens or [])


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ("".join(f"#define A{i} a\n" for i in range(10_001)), "a program must define at most 10000 macros"),
        ("#define B " + "a " * 20_000, "a directive must have at most 20000 tokens"),
        ("#ifndef B\n" * 20_000, "conditionals must nest at most 256 deep"),  # each line asks all of them
        ("$ " * 10_000, "and 900 more messages\nthe program is read no further: it has 1000 errors"),
        ('@name("a\\\nb") $', ":4:5: error[lex]"),  # a string that goes on behind its line moves no place
    ],
    ids=["macros", "tokens", "conditionals", "errors", "place"],
)
def test_what_is_read_has_limits_and_right_places(parts: str, said: str, tmp_path: Path) -> None:
    assert said in refused(program(tmp_path, parts))


def test_all_texts_have_at_most_as_many_characters_as_a_token_can_tell_apart() -> None:
    """More would put a token into the number of another place."""
    (token, _) = tokenize(" " * (PLACE - 2) + "a", "a.p4", Diagnostics())
    assert (token.text, token.span.column, token.span.length) == ("a", PLACE - 1, 1)
    twice = Diagnostics()
    tokenize(" " * (PLACE // 2), "a.p4", twice)
    with pytest.raises(CompileError, match=r"b.p4:1:1: error\[lex\]: a program must have at most 4194303 characters"):
        tokenize(" " * (PLACE // 2) + "a", "b.p4", twice)


def test_the_size_is_that_of_all_files_together_each_as_often_as_it_is_included(tmp_path: Path) -> None:
    (tmp_path / "a.p4").write_text("#define A 1\n" + " " * (SOURCE_BYTES_MAX // 2))
    text = refused(program(tmp_path, '#include "a.p4"\n#include "a.p4"\n'))
    assert f"a.p4: a program must have at most {SOURCE_BYTES_MAX} bytes, with all that it includes" in text


def test_a_program_has_a_most_of_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path, "#define A 1\n")
    monkeypatch.setattr("p4c.frontend.parse.preprocessor.TOKENS_MAX", 1000)
    assert "a program must have at most 500000 tokens" in refused(path)


def preprocessed(tmp_path: Path, text: str, **definitions: str) -> str:
    source = tmp_path / "main.p4"
    source.write_text(text)
    diagnostics = Diagnostics()
    preprocessor = Preprocessor(diagnostics)
    preprocessor.define(definitions)
    tokens = preprocessor.run(source)
    assert not diagnostics.errors, diagnostics.render()
    return " ".join(t.text for t in list(tokens)[:-1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#define A 1\nA A", "1 1"),
        ("#define A B\n#define B A\nA", "A"),
        ("#define F(x, y) x + y\nF(1, (2, 3))", "1 + ( 2 , 3 )"),
        ("#define F(x) x\nF F(F(1))", "F 1"),
        ("#define EMPTY()\nEMPTY() 1", "1"),
        ("#define LONG 1 + \\\n  2\nLONG", "1 + 2"),
        ("#define A 1\n#undef A\nA", "A"),
        ("#define F (x)\nF", "( x )"),
        ("#ifdef A\n1\n#else\n2\n#endif", "2"),
        ("#define A\n#ifndef A\n1\n#elif defined(A) && 1\n2\n#else\n3\n#endif", "2"),
        ("#define CAT(a, b) a##b\nCAT(x, 1) CAT(, y) CAT(x,) CAT(1, 2)", "x1 y x 12"),
        ("#define X 9\n#define CAT(a, b) a ## b\n#define VIA(a) CAT(a, 1) a\nCAT(X, 1) VIA(X)", "X1 91 9"),
        ("#define XY 7\n#define CAT(a, b, c) a##b##c\nCAT(X, Y,) CAT(1 X, Y 2, 3)", "7 1 7 23"),
        ("#define AB a ## b\nAB", "ab"),
        ("#define A(x) a##x##(b) x ## +\nA(0)", "a0 ( b ) 0 +"),  # as cpp -x assembler-with-cpp, which p4c runs
        ("#if 0\n#if 1\n1\n#else\n2\n#endif\n#else\n3\n#endif", "3"),
        ("#define V 20\n#if V >= 20 && (V * 2 == 40 || !V)\n1\n#endif", "1"),
        ("#if UNKNOWN\n1\n#else\n2\n#endif", "2"),
        ("1 // 2\n/* 3\n4 */ 5", "1 5"),
    ],
)
def test_text_is_preprocessed(tmp_path: Path, text: str, expected: str) -> None:
    assert preprocessed(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#define A ## b\nA", "## must have a token on each side"),
        ("#define A a ##\nA", "## must have a token on each side"),
        ("#define A(x) #x\nA(a)", "the # operator is not supported"),
        (
            "#define C(a, b) a##b\n" + "".join(f"C(x, {i})\n" for i in range(1001)),
            "a program must make at most 1000 different tokens with ##",
        ),
    ],
)
def test_what_cannot_be_joined_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "main.p4").write_text(text)
    diagnostics = Diagnostics()
    with contextlib.suppress(CompileError):
        Preprocessor(diagnostics).run(tmp_path / "main.p4")
    assert [d.message for d in diagnostics.errors] == [message]


def test_definitions_come_from_the_command_line(tmp_path: Path) -> None:
    assert preprocessed(tmp_path, "#if N == 3\nN\n#endif", N="3") == "3"


def test_a_file_includes_what_stands_beside_it_and_what_is_shipped(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "one.p4").write_text('#include "two.p4"\n')
    (tmp_path / "parts" / "two.p4").write_text("inner")
    text = preprocessed(tmp_path, '#include "parts/one.p4"\n#include <core.p4>\n')
    assert text.startswith("inner error { NoError ,")


@pytest.mark.parametrize("line", ['#include "{secret}"', '#include "../secret.p4"', "#include <{secret}>"])
def test_a_program_with_a_list_of_includable_files_reads_no_other(tmp_path: Path, line: str) -> None:
    secret, source = tmp_path / "secret.p4", tmp_path / "own" / "main.p4"
    secret.write_text("words")
    source.parent.mkdir()
    source.write_text(f"#include <core.p4>\n{line.format(secret=secret)}\n")
    diagnostics = Diagnostics()
    preprocessor = Preprocessor(diagnostics, includable=frozenset({STANDARD_INCLUDE / "core.p4"}))
    assert len(preprocessor.run(source)) > 1
    assert preprocessor.read == [source, STANDARD_INCLUDE / "core.p4"]
    assert [error.message.split(" '")[0] for error in diagnostics.errors] == ["cannot find the file"]


def test_an_endless_include_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "self.p4"
    source.write_text('#include "self.p4"\n')
    diagnostics = Diagnostics()
    Preprocessor(diagnostics).run(source)
    assert "nest deeper" in diagnostics.errors[0].message


def test_tokens_of_a_macro_stand_where_it_was_written_and_know_where_it_is_used(tmp_path: Path) -> None:
    source = tmp_path / "main.p4"
    source.write_text("#define PAIR(x) x , second\n\n  PAIR(first)\n")
    tokens = Preprocessor(Diagnostics()).run(source)
    first, _, second, _ = tokens
    assert (first.span.line, first.span.column, first.span.via) == (3, 8, "")
    assert (second.span.line, second.span.column) == (1, 21)
    assert second.span.via == f"in the text of macro PAIR, used at {source}:3:3"


@given(st.integers(0, 2**70), st.sampled_from(["", "w", "s"]), st.integers(1, 128))
def test_integer_literals_are_read_in_every_base(value: int, sign: str, width: int) -> None:
    prefix = f"{width}{sign}" if sign else ""
    expected = (value, width if sign else None, sign == "s")
    for text in (f"{value}", f"0x{value:x}", f"0X{value:X}", f"0b{value:b}", f"0o{value:o}", f"0d{value}"):
        assert integer(prefix + text) == expected


@given(st.text(max_size=60))
def test_any_text_is_cut_into_tokens_or_complained_about(text: str) -> None:
    diagnostics = Diagnostics()
    tokens = list(tokenize(text, "any.p4", diagnostics))
    assert tokens[-1].kind == "newline"
    assert all(t.span.line >= 1 and t.span.column >= 1 for t in tokens)
