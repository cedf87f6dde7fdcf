"""MRC-Client's responder under test, where a checkout of it is. It has no memory and no requester."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conform import rule
from conform.nic import run
from conform.nic.control import Channel, channel
from conform.nic.device_file import parse
from conform.nic.link import SocketLink
from conform.result import Result

MRC_CLIENT = "MRCLAB_MRC_CLIENT"
"""The environment variable that says where a checkout of MRC-Client is."""
ADAPTER = Path(__file__).with_name("client_nic.py")
FILE = """
udp_port = 4971
encapsulation = "none"
[control]
command = {command}
[evs]
"0xc003" = 1
"0xc004" = 2
"""
RULES = {one.id: one for one in rule.load(["responder"])}
KEPT = {"RSP-006", "RSP-010", "RSP-012", "RSP-013", "RSP-014", "RSP-030", "RSP-054"}
CHOICES = {"RSP-011", "RSP-050"}

Judge = Callable[..., list[Result]]


@pytest.fixture
def judged(tmp_path: Path) -> Iterator[Judge]:
    """Judges rules on the responder with these fixes."""
    place = os.environ.get(MRC_CLIENT)
    if not place:
        pytest.skip(f"needs a checkout of MRC-Client, and {MRC_CLIENT} with its place")
    made: list[Channel | SocketLink] = []

    def judge(fixes: str, *names: str) -> list[Result]:
        words = [sys.executable, str(ADAPTER), str(place), str(tmp_path / "wire"), fixes]
        about = parse(FILE.format(command=repr(shlex.join(words))))
        link = SocketLink(tmp_path / "wire")
        control = channel(about.control)
        made.extend([control, link])
        tester = run.Tester(about, link, control)
        tester.greet()
        return [tester.run(RULES[name])[0] for name in names]

    yield judge
    for one in made:
        one.close()


def test_as_it_is_the_responder_answers_nothing(judged: Judge) -> None:
    """Its `process_packet` names a field of CC_STATE that its own CC_STATE does not have (986ded2)."""
    found = judged("none", *list(RULES)[:6])
    assert [one.outcome for one in found] == ["fail"] * 3 + ["not reachable"] * 3
    assert found[-1].text.startswith("no frame of the device has come")


@pytest.mark.parametrize(
    ("fixes", "outcome"), [("keyword", "fail"), ("keyword,check", "fail"), ("keyword,check,number", "pass")]
)
def test_its_sack_is_one_only_with_another_check_and_number(judged: Judge, fixes: str, outcome: str) -> None:
    assert [one.outcome for one in judged(fixes, "RSP-010")] == [outcome]


@pytest.mark.slow
def test_the_deviations_of_the_responder_are_named_by_their_rules(judged: Judge) -> None:
    found = {one.rule: one for one in judged("keyword,check,number", *RULES)}
    assert {name for name, one in found.items() if one.outcome == "pass"} == KEPT
    assert {name for name, one in found.items() if one.outcome == "device's choice"} == CHOICES
    assert [one for name, one in found.items() if name not in KEPT | CHOICES and one.outcome != "fail"] == []
    assert "came: the ICRC is wrong" in found["RSP-021"].text
    assert found["RSP-049"].text == "the SACK counts 3 units, not 4"
