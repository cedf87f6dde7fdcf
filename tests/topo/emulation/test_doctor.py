"""The doctor: tells what is there by trying it, and leaves nothing behind."""

import json
import os
import sys

import pytest

from cli.main import main
from tests.helpers.waiting import ran
from topo.emulation import doctor
from topo.emulation.doctor import examine
from topo.emulation.lab import Lab
from topo.emulation.state import LabError
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
