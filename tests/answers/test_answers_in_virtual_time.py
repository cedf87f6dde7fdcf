"""Answers to a dead link in whole fabrics in virtual time."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judging.run import Run
from running import identity
from running.options import Choices
from running.runner import make_run
from running.spec import RunSpec
from running.transport_choice import TRANSPORTS, transport
from scenarios import library
from scenarios.scenario import Phase, TimedFault
from topo.planfile import load_plan

CUT = TimedFault(0.3, "link-down", "p0l0-p0s1", 0.5)


def spec(name: str, faults: Sequence[TimedFault] = (), seed: int = 3, **changes: Any) -> RunSpec:
    """A second of `smoke`'s traffic on the smallest plan."""
    phases = (Phase("warmup", 0.3), Phase("reference", 0.3), Phase("faults", 1.2), Phase("heal", 0.3))
    scenario = replace(library.find("smoke"), timeline=lambda setting: list(faults), phases=phases)
    choice = replace(transport(name), payload="counted")
    return RunSpec(scenario, Choices(choice, load_plan("tiny"), seed=seed, world="simulated", **changes))


def hosts(path: Path) -> list[str]:
    return [file.read_text() for file in sorted((path / "journal").glob("h*.jsonl"))]


def test_without_a_dead_link_every_byte_of_a_journal_is_as_without_notifications(tmp_path: Path) -> None:
    grey = [TimedFault(0.05, "loss", "p0l0-p0s1", 0.5, 20.0, seed=5)]
    one, other = (make_run(spec(name, grey), tmp_path) for name in ("mrc", "mrc-bts"))
    assert hosts(one) == hosts(other)
    assert any('"repair"' in text for text in hosts(one))


def test_a_dead_link_is_missed_within_one_round_trip_of_a_packet_to_it(tmp_path: Path) -> None:
    """From the plan: two hops there and back, of a full frame and of one of 128 bytes, and the wait for a port."""
    plan = load_plan("tiny")
    hop_ns = plan.links.fabric_delay_ns + plan.frame_bytes_max * 8 * 10**9 // plan.links.host_rate_bps
    back_ns = plan.links.fabric_delay_ns + 128 * 8 * 10**9 // plan.links.host_rate_bps

    def first_missed_ns(name: str) -> int:
        lines = Run.open(make_run(spec(name, [CUT]), tmp_path)).kind("repair")
        return min(int(line["noticed_ns"]) - int(line["sent_ns"]) for line in lines)

    assert first_missed_ns("mrc") > plan.base_rtt_ns
    assert first_missed_ns("mrc-bts") <= 2 * (hop_ns + back_ns) + 4 * hop_ns


def test_a_variant_and_a_packages_transport_are_part_of_a_runs_identity() -> None:
    keys = {name: spec(name).options()["hashes"] for name in ("mrc", "mrc-bts")}
    assert keys["mrc"]["program"] != keys["mrc-bts"]["program"]
    assert keys["mrc"]["switch"] != keys["mrc-bts"]["switch"]
    assert keys["mrc"]["program"] == identity.program_digest()


def test_a_packages_transport_is_none_of_the_labs_and_needs_virtual_time() -> None:
    assert "mrc-bts" not in TRANSPORTS
    with pytest.raises(ValueError, match="only with --world simulated"):
        Choices(transport("mrc-bts"), load_plan("tiny"), seed=1, world="emulated")
    with pytest.raises(ValueError, match="mrc-bts"):
        transport("mrc-btz")
