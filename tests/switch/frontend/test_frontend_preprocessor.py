"""Macros, conditionals and includes; tokens keep their places."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from p4c.frontend.diagnostics import CompileError, Diagnostics
from p4c.frontend.parse.lexer import integer, tokenize
from p4c.frontend.parse.preprocessor import STANDARD_INCLUDE, Preprocessor


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
        ("#define A(x) x ## +\nA(a)", "## must make one token (got 'a+')"),
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
