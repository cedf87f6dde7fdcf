"""Before a lab is up: its name, its lock, and what the machine lacks."""

import argparse
import fcntl
import json
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from cli.main import main
from common import locks
from tests.helpers.stranger import as_a_stranger, let_all_enter
from tests.helpers.waiting import ran
from topo.emulation import doctor, labname, namespace, state
from topo.emulation.doctor import examine
from topo.emulation.embedded import serve_config
from topo.emulation.lab import Lab
from topo.emulation.labname import DEFAULT_LAB, LabName
from topo.emulation.state import LabError, NoLabError
from topo.emulation.wiring import link_commands
from topo.node import Host, leaf
from topo.planfile import load_plan


def test_every_finding_says_what_its_absence_costs_and_how_to_mend_it():
    findings = {row.name: row for row in examine()}
    assert all(finding.cost and finding.remedy for finding in findings.values())
    assert findings["kernel: epoll_pwait2"].present, "system calls are known by making them"
    assert findings["kernel: pidfd_open"].present


def test_a_missing_program_is_reported_with_its_package(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["doctor", "--format", "json"]) == 1
    findings = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert findings["ip"]["present"] is False
    assert findings["ip"]["remedy"] == "apt-get install iproute2"
    assert main(["doctor"]) == 1
    assert "MISSING  ip: no emulated lab. apt-get install iproute2" in capsys.readouterr().out


@pytest.mark.root
def test_up_without_a_program_says_how_to_get_it(private_run, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(LabError, match=r"nsenter is missing: no processes in hosts\. apt-get install util-linux"):
        Lab.up(load_plan("tiny"))


@pytest.mark.root
def test_kernel_features_are_tried_in_a_namespace_that_goes_again(private_run):
    assert {finding.name: finding.present for finding in examine()}["kernel: veth"]
    assert os.listdir("/run/netns") == []


@pytest.mark.root
def test_root_without_its_powers_as_in_a_container_is_told_which_are_missing():
    powerless = ["setpriv", "--bounding-set=-sys_admin,-net_admin", "--inh-caps=-sys_admin,-net_admin"]
    done = ran([*powerless, sys.executable, "-m", "cli", "doctor", "--format", "json"])
    assert done.returncode == 1, done.stderr
    findings = {row["name"]: row for row in json.loads(done.stdout)}
    assert not findings["kernel: network namespaces"]["present"]
    assert "container" in findings["kernel: network namespaces"]["remedy"]


@pytest.mark.root
def test_a_feature_that_the_kernel_refuses_is_told_in_the_kernels_words(private_run, monkeypatch):
    refused = doctor._try("link add d0 type no-such-device")
    monkeypatch.setattr(doctor, "_try", lambda *lines, tool="ip": refused)
    veth = next(row for row in examine() if row.name == "kernel: veth")
    assert not veth.present
    assert veth.cost.startswith("no links (")
    assert "no-such-device" in veth.cost or "Unknown device type" in veth.cost


def test_what_only_sudo_finds_is_not_missing_for_an_ordinary_user(tmp_path, monkeypatch):
    (tmp_path / "tc").write_text("#!/bin/sh\n")
    (tmp_path / "tc").chmod(0o755)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(doctor, "SUDO_ADDS", (str(tmp_path),))
    for user, present in ((1000, True), (0, False)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert next(row for row in examine() if row.name == "tc").present is present


def test_a_down_that_ends_leaves_the_files_of_the_next_up(tmp_path: Path) -> None:
    """Between the removal of the files and the end of `down`, another process may have made the folder anew."""
    root = tmp_path / "lab"
    down, newcomer = state.locked(root), state.locked(root)
    with down:
        (root / "lab.json").write_text("{}")
        state.remove(root)
        newcomer.__enter__()
        (root / ".lab.json.new").write_text("{}")  # the newcomer's record, not in its place yet
    with pytest.raises(LabError, match="being changed by process"), state.locked(root):
        pass
    (root / ".lab.json.new").rename(root / "lab.json")
    newcomer.__exit__(None, None, None)
    assert (root / "lab.json").exists()


def test_a_right_that_made_no_lab_leaves_no_folder(tmp_path: Path) -> None:
    root = tmp_path / "lab"
    with state.locked(root):
        assert root.exists()
    assert not root.exists()


LOCKS: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "lock": partial(state.locked, wait=True),
    "faults.lock": state.faults_locked,
}


@pytest.mark.root
@pytest.mark.parametrize("name", LOCKS)
def test_a_stranger_who_holds_a_lock_of_the_lab_is_named_and_not_waited_for_for_ever(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`flock` takes a descriptor that only reads: before this version of the program, every user could have one."""
    monkeypatch.setattr(locks, "TELL_S", 0.02)
    monkeypatch.setattr(state, "LOCK_S", 0.1)
    let_all_enter(tmp_path)
    (tmp_path / name).touch(0o644)
    with as_a_stranger():
        theirs = os.open(tmp_path / name, os.O_RDONLY)
    try:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        with pytest.raises(LabError, match=rf"still held by process {os.getpid()} of user"), LOCKS[name](tmp_path):
            pass
        assert f"at most 0 s more: process {os.getpid()} of user" in capsys.readouterr().err
    finally:
        os.close(theirs)
    with as_a_stranger(), pytest.raises(PermissionError):
        os.open(tmp_path / name, os.O_RDONLY)


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
