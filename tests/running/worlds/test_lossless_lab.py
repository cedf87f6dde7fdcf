"""Flow control on real links: an incast of the baseline into one host of a lossless lab, by hand."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from running.lateness import Lateness
from tests.helpers.living_lab import mrclab
from topo.emulation import state

pytestmark = pytest.mark.root
SENDERS = ("h1", "h2", "h3")
MESSAGES, SIZE = 40, 65_536


@pytest.fixture(scope="module")
def incast() -> Iterator[dict[str, Any]]:
    """What an incast of three hosts, always at line rate, verified in a lab whose ports pause instead of dropping; and
    for how long this machine stood still meanwhile: a host or a switch that does not run does not pause."""
    if state.read_record(state.ROOT) is not None:
        pytest.skip("a lab is running on this machine")
    mrclab("up", "tiny", "--single-plane", "--pfc")
    try:
        words = ["incast", "h0", *SENDERS, f"size={SIZE}", f"messages={MESSAGES}", "--transport", "roce-pfc"]
        with Lateness() as late:
            found = json.loads(mrclab("traffic", *words, "--format", "json"))
        yield {**found, "stalls_ns": [late_ns for _, late_ns in late.wakes if late_ns >= 2_000_000]}
    finally:
        mrclab("down")


def interfaces(node: str) -> list[dict[str, Any]]:
    """As `./lab inspect` has them."""
    (found,) = json.loads(mrclab("inspect", node, "--format", "json"))["nodes"]
    return list(found["interfaces"])


def test_an_incast_arrives_whole_and_no_switch_drops_a_packet(incast: dict[str, Any]) -> None:
    assert incast["bytes_verified"] == len(SENDERS) * MESSAGES * SIZE
    assert incast["bytes_wrong"] == 0
    drops = [row["DROPS"] for row in json.loads(mrclab("counters", "--format", "json"))["ports"] if row["DROPS"]]
    if drops and incast["stalls_ns"]:
        pytest.skip(f"the machine stood still for up to {max(incast['stalls_ns']) / 1e6:.0f} ms: {drops}")
    assert drops == []


def test_the_full_leaf_pauses_its_senders_and_they_obey(incast: dict[str, Any]) -> None:
    sent = {row["peer"].partition("-")[0]: row["pauses"]["TX_PAUSE"] for row in interfaces("p0l0")}
    assert sent["h1"] > 0  # under the same leaf
    assert sum(sent.values()) > sent["h1"]  # and the spines, by which the others come
    assert sent["h0"] == 0  # the receiver sends next to nothing
    (nic,) = interfaces("h1")
    assert nic["pauses"]["RX_PAUSE"] == sent["h1"]
    assert nic["pauses"]["PAUSED_US"] > 0


def test_inspect_shows_pauses_in_columns(incast: dict[str, Any]) -> None:
    head, *rows = mrclab("inspect", "p0l0").splitlines()[1:]
    assert head.split()[-3:] == ["RX_PAUSE", "TX_PAUSE", "PAUSED_US"]
    assert len(rows) == len(interfaces("p0l0"))
