"""Counters of a lab in which one switch runs no program: it is told, and the other switches are read as before."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest

from cli.commands import metrics
from controller.client import GrpcChannels
from running.view import RealLab, chosen_ports, rows_of
from topo.emulation.labname import LabName
from topo.node import Node, Switch
from topo.planfile import load_plan

PLAN = load_plan("tiny")
CRASHED = "p0s0"


class RefusedRead(grpc.RpcError):
    def __init__(self, status: grpc.StatusCode) -> None:
        self._status = status

    def code(self) -> grpc.StatusCode:
        return self._status

    def details(self) -> str:
        return f"device {CRASHED} has no forwarding pipeline"


class FakeChannel:
    """A switch whose counters are all zero, or which refuses to be read."""

    def __init__(self, refusal: grpc.RpcError | None) -> None:
        self._refusal = refusal

    def unary_stream(self, method: str) -> Any:
        def read(request: bytes, timeout: float) -> Iterable[bytes]:
            if self._refusal is not None:
                raise self._refusal
            return []

        return read


class QuietLab:
    """A lab without agents; its interfaces have carried some packets."""

    name = LabName()
    plan = PLAN
    root = Path("/nonexistent")
    switch_control = None

    def p4runtime(self, switch: Switch) -> tuple[str, int]:
        return switch.name, 1

    def counters(self, node: Node) -> Mapping[int, Mapping[str, int]]:
        return {port: {"rx_packets": 7, "tx_packets": 8} for port in range(1, 65)}

    def faults(self) -> list[object]:
        return []

    def agent_socket(self, host: object) -> Path:
        return Path("/nonexistent")


@pytest.fixture(params=[grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNAVAILABLE])
def lab(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One switch has lost its pipeline, or its whole process, as BMv2 does."""

    def channel(channels: GrpcChannels, target: str) -> FakeChannel:
        return FakeChannel(RefusedRead(request.param) if target == CRASHED else None)

    monkeypatch.setattr(GrpcChannels, "get", channel)
    return QuietLab()


def test_the_ports_of_all_switches_are_read_while_one_has_crashed(lab: Any) -> None:
    chosen = chosen_ports(PLAN, None)
    rows = rows_of(RealLab(lab), chosen)["ports"]
    assert [row["IFACE"] for row in rows] == [ref.interface for ref in chosen]
    assert {row["TX_OK"] for row in rows} == {8}


def test_a_crashed_switch_is_down_in_the_metrics_and_has_no_counters_of_its_program(lab: Any) -> None:
    lines = metrics.exposition(RealLab(lab)).splitlines()
    up = {line.split('"')[1]: line[-1] for line in lines if line.startswith("mrclab_switch_up{")}
    assert up == {switch.name: str(int(switch.name != CRASHED)) for switch in PLAN.switches()}
    ports = [line for line in lines if line.startswith("mrclab_switch_port_") and f'switch="{CRASHED}"' in line]
    assert {line.partition("{")[0] for line in ports} == {
        "mrclab_switch_port_receive_packets_total",
        "mrclab_switch_port_transmit_packets_total",
    }
    assert sum(line.startswith("mrclab_switch_port_trim_packets_total{") for line in lines) > 0


def test_the_table_of_counters_names_the_switch_that_runs_no_program(lab: Any, monkeypatch, capsys) -> None:
    monkeypatch.setattr("topo.emulation.lab.Lab.attach", lambda **_: lab)
    from cli import main as cli

    assert cli.main(["counters"]) == 0
    told = capsys.readouterr()
    assert f"{CRASHED}-eth1" in told.out
    assert told.err == f"{CRASHED} runs no program: the counts of P4 programs are missing there\n"
