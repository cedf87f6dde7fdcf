"""A text stays the text that it is: in a shell, in a Python file, in a spreadsheet and on a terminal."""

import ast
import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings

from common import files
from common.csv_text import csv_text
from common.quoting import command, docstring, quoted
from tests.helpers.hostile import names, texts, words
from tests.helpers.tracked import python_files


@given(texts.filter(lambda text: "\0" not in text))
@settings(max_examples=200)
def test_a_shell_reads_a_quoted_word_as_the_word(text: str) -> None:
    escaped = text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    assert words(f"./lab view {quoted(text)} --plain") == ["view", escaped, "--plain"]


@given(texts)
def test_python_reads_a_docstring_as_its_text(text: str) -> None:
    source = f"{docstring(text)}\n\nX = 1\n"
    assert ast.get_docstring(ast.parse(source.encode()), clean=False) == text


def test_text_without_special_characters_stays_as_readable_as_it_is() -> None:
    assert command("run", Path("found/lost_1.py"), "--seed", 7) == "./lab run found/lost_1.py --seed 7"
    assert command("view", Path("-x"), "my runs") == "./lab view ./-x 'my runs'"
    assert docstring("goodput: 3 of 4.\n\nFound.\n") == '"""goodput: 3 of 4.\n\nFound.\n"""'
    assert quoted("a\x1b[31m'\udcff!") == r"$'a\x1b[31m\x27\xff\x21'"


@given(names)
@settings(max_examples=30)
def test_a_file_may_have_any_name_that_a_folder_takes(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    path = tmp_path_factory.mktemp("written") / name
    files.write(path, "x")
    assert path.read_text() == "x"


@given(text=texts)
def test_no_cell_is_obeyed_by_a_terminal_or_begins_a_formula(text: str) -> None:
    (head, row) = csv.reader(io.StringIO(csv_text([text, "b"], [[text, 1]])))
    for one in (head[0], row[0]):
        assert all(character.isprintable() or character in "\t\xa0" for character in one)
        assert not one.startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize("number", ["-0.5", "+3", "1e-9", "", "nan"])
def test_numbers_and_own_words_stay_as_they_are(number: str) -> None:
    assert csv_text(["a", "options"], [[number, "--rate 50"]], ["options"]) == f"a,options\n{number},--rate 50\n"


def test_every_table_is_written_here() -> None:
    writers = {file.name for file in python_files() if "csv.writer" in file.read_text() and "tests" not in file.parts}
    assert writers == {"csv_text.py"}
