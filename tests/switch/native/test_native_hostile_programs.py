"""Damaged program JSON: the loader refuses it in words, or both engines run what it says, and do the same.

`test_native_sanitizers.py` runs this file again with the generated C under AddressSanitizer.
"""

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from p4c.frontend import compile_program
from p4c.model import ModelError, load
from switch.native.engine import NativeEngine
from tests.helpers.engines.scenario import Scenario

HERE = Path(__file__).parent
PLAYED = [HERE.parent / f"stf/{name}.p4" for name in ("arithmetic", "matching", "steer", "stateful")]
SOURCES = (PLAYED[0], *sorted((HERE / "programs").glob("*.p4")), *PLAYED[1:])  # in the order of the seed found
STEPS = 25
QUICK, ALL = 8, 250  # seeds of every run, and of a slow one
NUMBERS = (-1, 0, 1, 2, 7, 8, 63, 64, 65, 255, 2**16, 2**31 - 1, 2**31, 2**32, 2**63, 2**64)
TEXTS = (
    "", "0x", "0x0", "0xff", "-0x1", "0x" + "f" * 32, "scalars", "standard_metadata", 'a"; abort(); "', "*/", "\\",
    "\0",
)  # fmt: skip

Place = tuple[Any, Any]  # a list or an object, and an index or a name in it


def places(value: Any) -> Iterator[Place]:
    """Every place in the JSON, but for those that only say where something stood in the source."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if key != "source_info":
            yield value, key
            if isinstance(item, dict | list):
                yield from places(item)


def damage(program: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A program in which one to three values are gone, doubled, or exchanged for others of the same kind."""
    damaged = copy.deepcopy(program)
    for _ in range(rng.choice((1, 1, 2, 3))):
        every = list(places(damaged))
        holder, key = rng.choice(every)
        old = holder[key]
        like = [there[name] for there, name in every if type(there[name]) is type(old)]
        alike = [there[name] for there, name in every if name == key and type(there[name]) is type(old)]
        choice = rng.random()
        if choice < 0.1:
            del holder[key]
        elif choice < 0.2 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(old))
        elif choice < 0.3 and isinstance(old, int):
            holder[key] = rng.choice(NUMBERS)
        elif choice < 0.4 and isinstance(old, int):
            holder[key] = old + rng.choice((-1, 1))
        elif choice < 0.4 and isinstance(old, str):
            holder[key] = rng.choice(TEXTS)
        else:
            holder[key] = copy.deepcopy(rng.choice(like if choice < 0.6 else alike))
    return damaged


@pytest.fixture(scope="module")
def programs() -> list[dict[str, Any]]:
    return [dict(compile_program(source).json) for source in SOURCES]


def run(programs: list[dict[str, Any]], seed: int) -> bool:
    """Whether both engines took the damaged program; a refusal is a ModelError that names the place."""
    rng = random.Random(seed)
    try:
        Scenario(load(damage(rng.choice(programs), rng)), seed).run(STEPS)
    except ModelError:
        return False
    return True


@pytest.mark.parametrize("seed", range(QUICK))
def test_a_damaged_program_is_refused_or_runs_alike_on_both_engines(programs: list[dict[str, Any]], seed: int) -> None:
    run(programs, seed)


def test_a_header_that_becomes_metadata_or_metadata_that_becomes_a_header_is_refused_or_runs_alike(programs) -> None:
    """Found by a seed of the test above: a deparser that emits metadata."""
    refused = 0
    for program in programs:
        for header in program["headers"]:
            header["metadata"] = not header["metadata"]
            try:
                Scenario(load(program), 1).run(STEPS)
            except ModelError as error:
                refused += "metadata" in str(error)
            finally:
                header["metadata"] = not header["metadata"]
    assert refused > len(programs)


def test_a_checksum_of_a_header_that_is_not_there_is_not_wrong(programs: list[dict[str, Any]]) -> None:
    """`verify_checksum(true, ...)`; found by seed 520 of the test below, in which another header was the condition."""
    program = copy.deepcopy(programs[-1])
    for checksum in program["checksums"]:
        if checksum["verify"]:
            del checksum["if_cond"]
    Scenario(load(program), seed=3).run(STEPS)


def test_without_a_field_for_the_priority_clones_take_none_from_their_session(programs: list[dict[str, Any]]) -> None:
    """Native clones did."""
    for seed, program in enumerate(copy.deepcopy(programs)):
        next(a for a in program["field_aliases"] if a[0] == "intrinsic_metadata.priority")[0] = "none.none"
        for more in range(3):
            Scenario(load(program), seed + more).run(STEPS)


def test_a_parser_starts_at_no_error_where_it_is_not_zero(programs: list[dict[str, Any]]) -> None:
    """A program that does not list NoError gets it behind its own errors (simple_switch: ErrorCodeMap::add_core).
    The program compares with 0, so each packet is told to have an error. The native parser started at 0.
    """
    program = copy.deepcopy(programs[0])
    next(error for error in program["errors"] if error[0] == "NoError")[:] = ["Other", 0]
    program["errors"].append(["Another", 20])
    loaded = load(program)
    assert loaded.errors["NoError"] == 21
    for seed in range(3):
        Scenario(loaded, seed).run(STEPS)


def test_a_clone_at_egress_and_its_packet_share_the_number_of_copies_that_may_be_made(programs) -> None:
    """Found by this seed of the campaign: an action that clones and goes on."""
    assert run(programs, 11000552)


def wide_header(program: dict[str, Any]) -> None:
    program["header_types"][0]["fields"] += [[f"f{number}", 64] for number in range(2049)]


def long_input(program: dict[str, Any]) -> None:
    const = {"type": "hexstr", "value": "0x0", "bitwidth": 64}
    program["calculations"][0]["input"] += [const] * 2049


def long_register(program: dict[str, Any]) -> None:
    program["register_arrays"].append({"name": "r", "id": 99, "size": 2**24 + 1, "bitwidth": 65})


def far_look_ahead(program: dict[str, Any]) -> None:
    """Found by seed 309 below: a mask of 2**64 bits took the machine's memory."""
    look = {"type": "lookahead", "value": [0, 2**64]}
    target = {"type": "field", "value": ["scalars", program["header_types"][0]["fields"][0][0]]}
    state = program["parsers"][0]["parse_states"][0]
    state["parser_ops"] = [{"op": "set", "parameters": [target, look]}]


@pytest.mark.parametrize("change", [wide_header, long_input, long_register, far_look_ahead])
def test_what_would_take_the_switchs_memory_or_stack_is_refused(programs, change) -> None:
    program = copy.deepcopy(programs[-1])
    change(program)
    with pytest.raises(ModelError, match=r"131072|16384|268435456"):
        NativeEngine().load(load(program))


@pytest.mark.slow
def test_hundreds_of_damaged_programs_are_refused_or_run_alike(programs: list[dict[str, Any]]) -> None:
    ran = sum(run(programs, seed) for seed in range(QUICK, ALL))
    assert ran > (ALL - QUICK) // 5  # else the damage is too great to reach the generated code
