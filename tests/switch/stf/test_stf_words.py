"""The words of packet files: what they mean, how mistakes are named, and the commands that run them."""

import json
from pathlib import Path

import pytest

from p4c.entries import Lpm, Range, Ternary
from p4c.frontend import compile_program
from p4c.model import load
from switch.__main__ import main
from switch.reference import ReferenceEngine
from switch.stf import StfError, parse, run
from switch.stf.control import match, number
from switch.stf.names import find_key
from switch.stf.statements import Add, Expect, StfPacket, time_ns

HERE = Path(__file__).parent
MATCHING = HERE / "matching.p4"


@pytest.fixture(scope="module")
def program():
    return load(compile_program(MATCHING).json)


def test_a_line_is_one_statement_and_comments_are_nothing() -> None:
    statements = parse(
        "# all\n\npacket 1 0a 0B # tail\nexpect 2 0*$ at 1.5us\nadd t 7 f:0x1&&&0x3 g:1..2 a(x:1, 2) = e"
    )
    assert statements[0] == StfPacket(3, 1, b"\x0a\x0b")
    assert statements[1] == Expect(4, 2, "0*", True, 1500)
    assert isinstance(statements[2], Add)
    assert (statements[2].priority, statements[2].label) == (7, "e")
    assert statements[2].matches == (("f", "0x1&&&0x3"), ("g", "1..2"))
    assert statements[2].action.args == (("x", "1"), ("", "2"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pakcet 1 00", r"line 1: unknown word 'pakcet'; there are: add, .*packet"),
        ("packet 1 0", r"a packet is PORT and an even number of hex digits"),
        ("expect 1 0g", r"hex digits or '\*'"),
        ("add t f:1", r"an action is NAME\(PARAMETER:VALUE, …\)"),
        ("add t f a()", r"a match is FIELD:VALUE, not 'f'"),
        ("add t f:1 a(b(c)", r"an action is NAME\(PARAMETER:VALUE, …\)"),
        (f"wait {'9' * 400}s", r"a time must be at most 4611686018427387904 ns \(got 9+\)"),
        ("wait soon", r"a time is a number and ns, us, ms or s, not 'soon'"),
        ("group p 1", r"group takes 3 operands, not 2"),
        ("check_counter c == 1", r"expected: check_counter NAME\(INDEX\) \[packets\|bytes\] == N"),
        ("check_colour c(1) == 1", r"unknown word 'check_colour'"),
        ("add nowhere a:1 set_value(value:1)", r"table 'nowhere' does not exist; there are: .*In.lpm_table"),
        ("add lpm_table z:1 drop()", r"has no match field 'z'; there are: hdr.keys.a, hdr.keys.b"),
        ("add lpm_table a:1 b:1 fly()", r"action 'fly' does not exist; there are: In.drop, In.set_value, NoAction"),
        ("add lpm_table a:0/40 b:1 drop()", r"a prefix length is 0 to 32, not 40"),
        ("add lpm_table a:0 drop()", r"the field hdr.keys.b needs a value: its match is exact"),
        ("add lpm_table a:0 b:0x10000 drop()", r"0x10000 does not fit 16 bits"),
        ("add lpm_table a:0 b:1 set_value()", r"action In.set_value needs the parameter value"),
        ("add lpm_table a:0 b:1 set_value(size:1)", r"has no parameter size; there are: value"),
        ("setdefault table set_value(value:1)", r"table 'table' does not exist"),
        ("port 1 speed=3", r"a port has no 'speed'; there are: up, rate_bps"),
        ("remove e9", r"no entry is labelled 'e9'; there are: none"),
        ("check_port 1 packets == 0", r"a port has no counter 'packets'; there are: rx_packets"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_the_choices(program, line: str, message: str) -> None:
    with pytest.raises(StfError, match=message):
        run(ReferenceEngine(), program, parse(line))


def test_a_long_line_takes_time_by_its_length() -> None:
    """40,000 characters took a minute, and four times as long at twice the length."""
    (statement,) = parse(f"add t f:1 a({'1,' * 500_000}2)")
    assert isinstance(statement, Add)
    assert len(statement.action.args) == 500_001
    with pytest.raises(StfError, match="line 1: an action is NAME"):
        parse("add t " + "x" * 1_000_000)


def test_values_are_numbers_or_addresses() -> None:
    assert number("fcbb:bbbb::", 128) == 0xFCBBBBBB << 96
    assert number("10.0.0.1", 32) == 0x0A000001
    assert number("02:00:00:00:00:0f", 48) == 0x02000000000F
    assert number("0b101", 3) == number("5", 3) == 5
    assert time_ns("2s") == 2 * time_ns("1000ms") == 2_000_000_000


def test_matches_may_have_stars_masks_and_ranges(program) -> None:
    ternary, ranged = program.table("In.ternary_table"), program.table("In.range_table")
    assert match("0x0b00****", find_key(ternary, "a")) == Ternary(0x0B000000, 0xFFFF0000)
    assert match(None, find_key(ternary, "a")) == Ternary(0, 0)
    assert match("3->5", find_key(ranged, "b")) == match("3..5", find_key(ranged, "b")) == Range(3, 5)
    assert match("0x0a******", find_key(program.table("In.lpm_table"), "a")) == Lpm(0x0A000000, 8)


def test_what_differs_is_shown_where_it_differs(program) -> None:
    text = "packet 0 07 12345678 0000 00\nexpect 1 07 12345678 0000 00 00 0002\npacket 0 01 00000000 0000 00\nno_packet"
    first, second = run(ReferenceEngine(), program, parse(text))
    assert (first.line, second.line) == (2, 4)
    assert "differs at byte 10" in first.message
    assert "unexpected packet on port 1" in second.message


def test_the_command_says_passed_or_failed_by_its_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.stf", tmp_path / "bad.stf"
    good.write_text("packet 0 07 12345678 0000 00\nexpect 1\n")
    bad.write_text("expect 1 00\n")
    words = ["stf", "--program", str(MATCHING)]
    assert main([*words, str(good), "--trace"]) == 0
    assert "DROPPED" not in capsys.readouterr().out
    assert main([*words, str(good), str(bad)]) == 1
    captured = capsys.readouterr()
    assert f"{good}: passed" in captured.out
    assert f"{bad}: line 1: expected a packet on port 1, none came" in captured.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["stf", "missing.stf", "--program", str(MATCHING)], "error: missing.stf: no such file or directory\n"),
        (["stf", str(HERE / "operators.stf"), "--program", "missing.json"], "missing.json"),
        (["trace", str(MATCHING), "--port", "1", "--packet", "0"], "even number of hexadecimal digits"),
        (["trace", str(MATCHING), "--port", "511", "--packet", "00"], "port 511 is not configured"),
    ],
)
def test_bad_input_exits_with_2_and_names_it(words, message, capsys) -> None:
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_a_long_packet_file_is_refused_unread(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "long.stf"
    path.write_text("\n" * ((4 << 20) + 1))
    assert main(["stf", str(path), "--program", str(MATCHING)]) == 2
    assert "long.stf: must have at most 4194304 bytes (got 4194305)" in capsys.readouterr().err


def test_trace_installs_entries_and_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = tmp_path / "entries.stf"
    entries.write_text("add lpm_table a:0/0 b:1 set_value(value:9)\n")
    words = ["trace", str(MATCHING), "--port", "1", "--packet", "0100000000000100", "--entries", str(entries)]
    assert main([*words, "--format", "json"]) == 0
    steps = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert any(s["kind"] == "action" and s["args"] == {"value": "9"} for s in steps)
    assert steps[-1]["kind"] == "transmit"
