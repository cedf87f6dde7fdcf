"""Both engines refuse what cannot be in the same words, and keep what they had."""

from collections.abc import Callable
from typing import Any

import pytest

from p4c.entries import ActionCall, Entry, Exact, GroupRef, Lpm, MemberRef, Optional, Range, Ternary
from p4c.model import Program
from switch.engine import EngineError, MeterConfig, PortConfig, QueueConfig
from switch.native.engine import NativeEngine
from switch.reference import ReferenceEngine

CALL = ActionCall("In.metered", (7,))
REQUESTS: list[tuple[str, tuple[Any, ...]]] = [
    ("insert_entry", ("In.none", Entry((), CALL))),
    ("insert_entry", ("In.exact_table", Entry((Exact(1 << 32), Exact(1)), CALL))),
    ("insert_entry", ("In.exact_table", Entry((Exact(1),), CALL))),
    ("insert_entry", ("In.exact_table", Entry((Exact(1), Range(0, 1)), CALL))),
    ("insert_entry", ("In.exact_table", Entry((Exact(1), Exact(1)), MemberRef(1)))),
    ("insert_entry", ("In.exact_table", Entry((Exact(1), Exact(1)), ActionCall("In.none")))),
    ("insert_entry", ("In.exact_table", Entry((Exact(1), Exact(1)), ActionCall("In.metered")))),
    ("insert_entry", ("In.exact_table", Entry((Exact(1), Exact(1)), ActionCall("In.metered", (1 << 70,))))),
    ("insert_entry", ("In.lpm_table", Entry((Lpm(1, 33), Exact(1)), ActionCall("NoAction")))),
    (
        "insert_entry",
        ("In.ternary_table", Entry((Ternary(0, 1 << 40), Ternary(0, 0), Exact(1)), ActionCall("In.drop"), 1)),
    ),
    (
        "insert_entry",
        ("In.ternary_table", Entry((Optional(1 << 40), Ternary(0, 0), Exact(1)), ActionCall("In.drop"), 1)),
    ),
    ("insert_entry", ("In.selector_table", Entry((Exact(1),), CALL))),
    ("insert_entry", ("In.profile_table", Entry((Exact(1),), GroupRef(1)))),
    ("set_meter", ("In.none", 0, None)),
    ("set_meter", ("In.packet_meter", 0, MeterConfig(2, 1, 1, 1))),
    ("set_meter", ("In.packet_meter", 0, MeterConfig(-1, 1, 1, 1))),
    ("write_register", ("In.none", 0, 0)),
    ("write_register", ("In.sums", 0, 1 << 200)),
    ("read_counter", ("In.none", 0)),
    ("set_member", ("In.none", 1, CALL)),
    ("delete_multicast_group", (9,)),
    ("set_multicast_group", (0, ())),
    ("delete_clone_session", (9,)),
    ("set_clone_session", (1 << 15, (), 0)),
    ("set_clone_session", (1, (), -1)),
    ("set_clone_session", (1, (), 0, 8)),
    ("configure_port", (511, PortConfig(), 0)),
    ("configure_port", (1, PortConfig(loss=1.5), 0)),
    ("configure_port", (1, PortConfig(delay_ns=-1), 0)),
    ("configure_port", (1, PortConfig(queues=(QueueConfig(),)), 0)),
    ("configure_port", (1, PortConfig(queues=(QueueConfig(rate_pps=-1),) * 8), 0)),
    ("receive", (1, bytes(16385), 0)),
]


@pytest.mark.parametrize(("operation", "arguments"), REQUESTS)
def test_a_request_that_cannot_be_is_refused_in_the_same_words(
    operation: str, arguments: tuple[Any, ...], compiled: Callable[[str], Program]
) -> None:
    program, words = compiled("matching.p4"), []
    for engine in (ReferenceEngine(), NativeEngine()):
        engine.load(program)
        engine.configure_port(1, PortConfig(), 0)
        with pytest.raises(EngineError) as refused:
            getattr(engine, operation)(*arguments)
        words.append(str(refused.value))
    assert words[0] == words[1]
