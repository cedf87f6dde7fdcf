"""A run as JSON: read back it is the same run, and what is wrong with a document is said with key, rule and choices."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cli.choosing import chosen
from operations.rehearsal import change, rehearse
from paper import catalogue, perform
from running.document import spec_of, written
from running.options import DEFAULTS, OPTIONS
from running.spec import RunSpec
from scenarios import library
from studies.hunting.draw import draw
from tests.helpers.pytorch.world import require_torch

ROOT = Path(__file__).parents[2]
CHANGE = ROOT / "docs/changes/spines-one-by-one.toml"
ASKED: list[dict[str, Any]] = [
    {"fault": ["loss p0l1-p0s1 20 @1 for 2", "link-down p1l0-p1s0 @2"], "time": 0.5, "until": 3.0},
    {"transport": "roce-pfc-8qp", "reconvergence": 0.1, "payload": "counted", "set": ["fabric.planes=2"]},
    {"setting": ["selection=reps", "evs_active=8"], "record_packets": "1..2", "short": True, "rate": 100.0},
    {"world": "emulated", "rate": 8.0, "program": "true {server}", "ranks": "h0,h3"},
]


def same(spec: RunSpec) -> None:
    sent = json.loads(json.dumps(written(spec)))
    again = spec_of(sent)
    assert written(again) == sent
    assert json.dumps(again.options()) == json.dumps(spec.options())
    assert (again.workloads(), again.faults(), again.programs()) == (spec.workloads(), spec.faults(), spec.programs())
    assert (again.plan, again.phases, again.choices) == (spec.plan, spec.phases, spec.choices)
    assert [check.__qualname__ for check in again.checks()] == [check.__qualname__ for check in spec.checks()]


@pytest.mark.parametrize("name", library.SHIPPED)
def test_every_scenario_is_sent_by_name(name: str) -> None:
    if name == "ddp":
        require_torch()
    same(chosen({"scenario": name, "world": "simulated", "seed": 7}))


@pytest.mark.parametrize("asked", ASKED)
def test_every_choice_arrives(asked: dict[str, Any]) -> None:
    same(chosen({"scenario": "link-flap", "world": "simulated", "seed": 7, **asked}))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**48))
def test_a_drawn_case_arrives_whole(seed: int) -> None:
    same(draw(seed).spec())


def test_a_rehearsed_change_arrives_whole() -> None:
    same(rehearse.spec(change.read(CHANGE), 3, 2))


@pytest.mark.parametrize("name", ["9a", "16", "18", "22"])
def test_every_run_of_a_figure_arrives_whole(name: str) -> None:
    for part in catalogue.find(name).parts(True):
        same(perform.spec(name, part, True))


def test_a_scenario_of_functions_is_sent_by_its_name_or_not_at_all() -> None:
    spec = chosen({"scenario": "smoke", "world": "simulated", "seed": 7})
    with pytest.raises(ValueError, match="smoke was made in code and is no data: it can be sent by name only"):
        written(replace(spec, choices=replace(spec.choices, source="")))


def test_another_seed_draws_other_losses() -> None:
    spec = chosen({"scenario": "smoke", "world": "simulated", "seed": 7, "fault": ["loss p0l1-p0s1 20 @1 for 2"]})
    assert [fault.seed for fault in spec.faults()][-1] != [fault.seed for fault in spec.with_seed(8).faults()][-1]
    assert spec.with_seed(7).options() == spec.options()


def at(document: dict[str, Any], path: str, value: Any) -> None:
    *outer, last = path.split(".")
    for name in outer:
        document = document[name]
    document[last] = value


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("choices.sed", 1, r"choices.sed is no key here; valid: transport, plan, seed, world"),
        ("more", 1, r"more is no key here; valid: choices, scenario, command"),
        ("choices.seed", "7", r"choices.seed is '7'; it must be an integer"),
        ("choices.seed", -1, r"choices: --seed must be between 0 and 9223372036854775807 \(got -1\)"),
        ("choices.seed", True, r"choices.seed is True; it must be an integer"),
        ("choices.short", 1, r"choices.short is 1; it must be true or false"),
        ("choices.time_factor", 0, r"choices: --time must be a factor above 0 and up to 100 \(got 0\)"),
        ("choices.world", "real", r"choices: --world must be one of emulated, simulated \(got 'real'\)"),
        ("choices.record_packets_s", [1.0], r"choices.record_packets_s is \[1.0\]; it must be a list of 2"),
        ("choices.added_faults", [{"verb": "cut"}], r"choices.added_faults\[0\].at_s is missing"),
        ("choices.transport.payload", "half", r"payload is 'half'; it must be one of 'real', 'counted'"),
        ("choices.plan.fabric.planes", 0, r"choices.plan: fabric.planes is 0; it must be"),
        ("scenario", {}, r"scenario.name is missing; present: nothing"),
        ("choices.source", "", r"choices.source must name a scenario, or scenario must be one"),
        ("choices.source", "nosuch", r"no scenario 'nosuch': valid are smoke, link-flap"),
        (
            "choices.reconvergence_s",
            0.1,
            r"choices: --reconvergence: 0 to 60 s, and only with a transport that has routing",
        ),
    ],
)
def test_a_wrong_document_is_refused_with_key_rule_and_choices(path: str, value: Any, said: str) -> None:
    document = json.loads(json.dumps(written(chosen({"scenario": "smoke", "world": "simulated", "seed": 7}))))
    at(document, path, value)
    with pytest.raises(ValueError, match=said):
        spec_of(document)


@pytest.mark.parametrize(
    "name", ["nosuch:x", "json:dumps", "judging.nosuch:x", "judging.checks", "judging.checks:nothing"]
)
def test_checks_that_are_no_function_are_refused(name: str) -> None:
    document = written(draw(1).spec())
    at(document, "scenario.checks", name)
    with pytest.raises(ValueError, match=r"it must be MODULE:FUNCTION of judging\.\*, .*, or empty for none"):
        spec_of(document)


def test_every_option_of_a_run_has_a_default_and_a_help() -> None:
    assert set(DEFAULTS) == set(OPTIONS)
    assert all(one.words["help"] for one in OPTIONS.values())
    make: Callable[..., RunSpec] = chosen
    assert make({"scenario": "smoke", "world": "simulated"}).choices.time_factor == DEFAULTS["time"]
