"""The option --payload: real payload for a run, counted payload for a sweep in virtual time."""

import argparse

import pytest

from cli.commands.seeds import sweep
from running.estimate import rank_memories
from scenarios.scenario import Workload
from tests.helpers.chosen import chosen
from topo.planfile import load_plan


@pytest.mark.parametrize(("words", "payload"), [([], "real"), (["--payload", "counted"], "counted")])
def test_a_run_carries_payload_unless_told(words: list[str], payload: str) -> None:
    spec = chosen(["collision", "--world", "simulated", "--seed", "1", *words])
    assert spec.choices.transport.payload == spec.options()["payload"] == payload


def test_real_links_carry_every_byte() -> None:
    with pytest.raises(ValueError, match="--payload counted: only with --world simulated"):
        chosen(["collision", "--payload", "counted", "--rate", "10"])


@pytest.mark.parametrize(
    ("words", "payload"), [([], "counted"), (["--payload", "real"], "real"), (["--world", "emulated"], "real")]
)
def test_a_sweep_counts_payload_in_virtual_time(words: list[str], payload: str) -> None:
    parser = argparse.ArgumentParser()
    sweep.register(parser.add_subparsers())
    (variant,) = sweep.asked(parser.parse_args(["sweep", "collision", *words]))
    given = list(variant.arguments)
    assert given[given.index("--payload") + 1] == payload


def test_counted_payload_of_any_size_takes_no_memory() -> None:
    workload = Workload("all_reduce", {"size": 1 << 30, "rounds": 1})
    assert {rank.bytes for rank in rank_memories(workload, load_plan("rack"), counted=True)} == {0}
    with pytest.raises(ValueError, match=r"would hold 5\.37 GB"):
        rank_memories(workload, load_plan("rack"))
