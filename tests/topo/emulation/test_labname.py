"""Names of labs: the rule, what follows from a name, and how one is chosen. Nothing here needs root."""

import argparse
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from topo.emulation import labname, namespace, state
from topo.emulation.embedded import serve_config
from topo.emulation.labname import DEFAULT_LAB, LabName
from topo.emulation.state import NoLabError
from topo.emulation.wiring import link_commands
from topo.node import Host, leaf
from topo.planfile import load_plan

PLAN = load_plan("tiny")
SOCKETS = Path("/run/mrclab/switch")
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,15}", fullmatch=True)


def test_the_default_lab_has_the_bare_names() -> None:
    assert DEFAULT_LAB.root == Path("/run/mrclab")
    assert DEFAULT_LAB.netns(Host(5)) == "h5"
    assert LabName("default") == DEFAULT_LAB


@given(NAMES, NAMES)
def test_labs_of_two_names_share_no_directory_and_no_namespace(one: str, other: str) -> None:
    a, b = LabName(one), LabName(other)
    nodes = (Host(0), Host(10), leaf(1, 0))
    assert (a.root == b.root) is (one == other)
    assert {a.netns(node) for node in nodes}.isdisjoint(b.netns(node) for node in nodes) is (one != other)


@pytest.mark.parametrize("text", ["", "Blue", "9lives", "-a", "a.b", "a/b", "../etc", "a b", "läb", "a" * 17, "h0\n"])
def test_a_bad_name_is_refused_with_the_rule(text: str) -> None:
    with pytest.raises(ValueError, match="1 to 16 lower-case letters, digits and hyphens and begins with a letter"):
        LabName(text)


def test_the_option_wins_over_the_environment_and_is_left_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(labname.VARIABLE, "blue")
    assert labname.chosen() == LabName("blue")
    parser = argparse.ArgumentParser()
    labname.add_option(parser)
    parser.parse_args([])
    assert labname.chosen() == LabName("blue")
    parser.parse_args(["--name", "red"])
    assert labname.chosen() == LabName("red")
    monkeypatch.setenv(labname.VARIABLE, "Blue")
    with pytest.raises(ValueError, match="MRCLAB_NAME: 'Blue' is no lab's name"):
        labname.chosen()


def test_links_and_switch_ports_are_in_the_namespaces_of_their_own_lab() -> None:
    blue = LabName("blue")
    for line in link_commands(PLAN, blue):
        words = line.split()
        assert all(words[at + 1].startswith("blue.") for at in range(len(words) - 1) if words[at] == "netns"), line
        assert max(len(words[2]), len(words[words.index("name") + 1])) <= 15
    config = serve_config(PLAN, list(PLAN.switches()), SOCKETS, name=blue)
    inside = {port["netns"] for device in config["devices"] for port in device["ports"]}
    assert inside == {str(namespace.path_of(f"blue.{switch}")) for switch in PLAN.switches()}


def test_a_given_name_without_a_lab_is_refused_and_the_default_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "read_record", lambda *_: None)
    monkeypatch.setattr(state, "records", dict)
    monkeypatch.delenv(labname.VARIABLE, raising=False)
    assert state.running_plan() is None
    monkeypatch.setenv(labname.VARIABLE, "nowhere")
    with pytest.raises(NoLabError, match=r"no lab of the name nowhere is running: ./lab up --name nowhere starts one"):
        state.running_plan()
