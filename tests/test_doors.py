"""Rooms take from each other only what a door names (`ARCHITECTURE.md`, "Doors")."""

import ast
import importlib

import pytest

from common.door import homes_of
from tests.helpers import api_page
from tests.helpers.doors import door, modules, past_doors

NAMES_MAX = {"common.uverbs": 45}
"""30 for every other door; this one is a whole wire format, of which the NIC and a program are the two ends."""
ROOMS = sorted({name.partition(".")[0] for name in modules()})
DOORS = sorted(name for name in modules() if door(name, modules()))


def read(source: str) -> dict[str, str]:
    """What `homes_of` reads, by Python's own parser."""
    blocks = [node.body for node in ast.parse(source).body if isinstance(node, ast.If)]
    lines = [line for block in blocks for line in block if isinstance(line, ast.ImportFrom) and line.module]
    return {one.name: str(line.module) for line in lines for one in line.names}


@pytest.mark.smoke
@pytest.mark.parametrize("room", ROOMS)
def test_a_room_takes_from_others_only_what_their_doors_name(room: str) -> None:
    inside = [name for name in modules() if name.partition(".")[0] == room]
    assert [place for name in inside for place in past_doors(name, modules())] == []


@pytest.mark.parametrize("room", ROOMS)
def test_an_import_past_the_door_of_a_room_is_found(room: str) -> None:
    """Planted in another room: a module that is no door, and a name that a door does not offer. And in this room."""
    inside = next(name for name in modules() if name.startswith(f"{room}.") and not door(name, modules()))
    other = "common.door" if room != "common" else "topo.plan"
    above, _, module = inside.rpartition(".")
    for planted in (f"import {inside}", f"from {above} import {module}", f"from {inside} import name"):
        assert past_doors(other, modules(), planted), planted
    assert past_doors(inside, modules(), "import cli.main" if room != "cli" else "import topo.emulation.wiring")
    if room in modules():
        assert past_doors(other, modules(), f"import {room}\nprint({room}.no_such_name)")
        assert past_doors(other, modules(), f"from {room} import no_such_name")


@pytest.mark.parametrize("name", DOORS)
def test_a_door_names_what_is_there_once_and_not_too_much(name: str) -> None:
    offered = door(name, modules())
    assert offered is not None
    assert len(set(offered)) == len(offered) <= NAMES_MAX.get(name, 30)
    inside = {each for each in offered if f"{name}.{each}" in modules()}
    file = modules()[name]
    lazy = set(homes_of(file.read_text())) if file.name == "__init__.py" else set()
    assert lazy <= set(offered)
    assert homes_of(file.read_text()) == read(file.read_text()) or not lazy
    assert not inside & lazy, "a module of that name would take its place once it is imported"
    if name.startswith("mrclab.torch"):
        pytest.importorskip("torch")
    module = importlib.import_module(name)
    for each in set(offered) - inside:
        assert hasattr(module, each), each
    with pytest.raises(AttributeError):
        _ = module.no_such_name


@pytest.mark.smoke
def test_the_page_of_doors_is_what_their_sources_say() -> None:
    assert api_page.PAGE.read_text() == api_page.page(), "python -m tests.helpers.api_page writes it"


@pytest.mark.parametrize("name", DOORS)
def test_what_a_door_offers_has_a_docstring(name: str) -> None:
    """A constant may do with its value."""
    assert [one.shown for _, one in api_page.told(name) if not one.told and " = " not in one.shown] == []
