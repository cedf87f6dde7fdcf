"""The states of a queue pair: one list for the transports, uverbs and programs in Python, and C's own spelling."""

import re
from pathlib import Path

import mrclab
from common import uverbs
from common.states import QPState
from endpoint import transport


def test_all_parts_in_python_have_the_same_states() -> None:
    assert mrclab.QPState is transport.QPState is QPState
    assert uverbs.STATES == ("reset", "init", "rtr", "rts", "sqd", "error")  # docs/uverbs.md


def test_the_library_in_c_spells_the_same_states_in_the_same_order() -> None:
    text = (Path(__file__).parents[2] / "libmrc/source/qp.c").read_text()
    table = re.findall(r"\[IBV_QPS_\w+\] = \"(\w+)\"", text)
    assert tuple(table) == uverbs.STATES
