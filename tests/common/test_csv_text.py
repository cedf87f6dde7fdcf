"""Cells of tables: texts of others stay texts, in a spreadsheet and on a terminal."""

import csv
import io

import pytest
from hypothesis import given

from common.csv_text import csv_text
from tests.helpers.hostile import texts
from tests.helpers.rooms import python_files


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
