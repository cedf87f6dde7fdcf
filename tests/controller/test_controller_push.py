"""Push, verify and reconverge against live switches: ours always, simple_switch_grpc where it is installed."""

import json
import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from common.client import ControlClient
from controller import Address, ProvisionError, compiled_pipelines, provision, provisioning, reconverge, verify
from controller.client import DELETE, INSERT, MODIFY, ClientError, GrpcChannels, P4RuntimeClient
from controller.entries import DefaultEntry, MeterEntry, TableEntry
from controller.items import encode
from controller.pipelines import PROGRAMS, Pipelines, read_pipelines
from controller.push import push, read_switch
from controller.tables import tables
from controller.words import line
from p4c.entries import Exact
from switch.engine import MeterConfig
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from tests.helpers.switch_process import simple_switch
from tests.helpers.waiting import ran
from topo.planfile import load_plan

WAIT_S = 20


@pytest.fixture(
    scope="module",
    params=[
        "embedded",
        pytest.param(
            "bmv2",
            marks=[
                pytest.mark.bmv2,
                pytest.mark.skipif(not shutil.which("simple_switch_grpc"), reason="simple_switch_grpc is not on PATH"),
            ],
        ),
    ],
)
def leaf_and_spine(request, tmp_path_factory):
    """(kind, addresses of p0l0 and p0s0)."""
    if request.param == "embedded":
        serving = request.getfixturevalue("serving")
        yield request.param, {name: serving.addresses[name] for name in ("p0l0", "p0s0")}
        return
    directory = tmp_path_factory.mktemp("bmv2")
    with simple_switch(directory, 11) as leaf, simple_switch(directory, 12) as spine:
        yield request.param, {"p0l0": Address(leaf, 11), "p0s0": Address(spine, 12)}


def meddle(addresses, name, pipelines, *changes):
    """Change a switch behind the controller's back: (update type, entity) pairs."""
    p4info = pipelines["leaf" if "l" in name else "spine"].p4info
    with GrpcChannels() as channels, P4RuntimeClient(channels, name, addresses[name]).as_primary() as client:
        client.write([(kind, encode(p4info, entity).body) for kind, entity in changes], lambda index: str(index))


def limit(port, traffic_class, packets):
    match = (("egress_port", Exact(port)), ("traffic_class", Exact(traffic_class)))
    return TableEntry("queue_limit", match, "drop_beyond", (packets, 10_000))


def open_paths() -> Iterator[str]:
    """What this process has open; another thread may close a descriptor meanwhile."""
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            yield os.readlink(f"/proc/self/fd/{descriptor}")


def test_a_push_installs_everything_and_a_second_one_writes_nothing(tiny, leaf_and_spine, pipelines, tmp_path):
    _, addresses = leaf_and_spine
    journal = tmp_path / "controller.jsonl"
    # tiny's trim_profile is what the programs have already: nothing to write
    wanted = sum(len(tables(tiny, tiny.switch_node(name))) - 1 for name in addresses)
    first = push(tiny, addresses, pipelines=pipelines, journal=journal)
    assert first.differences == ()
    assert first.written == wanted + 2  # with the two pipelines
    second = push(tiny, addresses, pipelines=pipelines, journal=journal)
    assert (second.written, second.differences) == (0, ())
    assert verify(tiny, addresses, pipelines=pipelines, journal=journal).ok
    lines = [json.loads(text) for text in journal.read_text().splitlines()]
    assert [(x["kind"], x["node"], x["action"], x["written"] > 0, x["differences"]) for x in lines] == [
        ("tables", name, action, written, 0)
        for action, written in (("push", True), ("push", False), ("verify", False))
        for name in addresses
    ]
    assert str(journal) not in set(open_paths())


def test_what_others_changed_is_found_named_and_put_right(tiny, leaf_and_spine, pipelines):
    _, addresses = leaf_and_spine
    push(tiny, addresses, pipelines=pipelines)
    meddle(
        addresses,
        "p0l0",
        pipelines,
        (INSERT, limit(77, 1, 5)),
        (MODIFY, limit(1, 0, 5)),
        (DELETE, limit(2, 0, 0)),
        (MODIFY, DefaultEntry("trim_profile", "trim_to", (300, 1, 7))),
        (MODIFY, MeterEntry("trimmed_meter", 1, MeterConfig(1, 1, 1, 1))),
        (MODIFY, MeterEntry("trimmed_meter", 9, MeterConfig(1, 1, 1, 1))),
        (MODIFY, DefaultEntry("dscp_to_class", "set_class", (5, 7))),
    )
    report = verify(tiny, addresses, pipelines=pipelines)
    found = {(d.switch, d.kind, d.detail.split(" →")[0]) for d in report.differences}
    assert found == {
        ("p0l0", "unexpected", "queue_limit egress_port=77 traffic_class=1"),
        ("p0l0", "different", "queue_limit egress_port=1 traffic_class=0"),
        ("p0l0", "missing", "queue_limit egress_port=2 traffic_class=0"),
        ("p0l0", "different", "trim_profile default"),
        ("p0l0", "different", "trimmed_meter[1]"),
        ("p0l0", "unexpected", "trimmed_meter[9]"),
        ("p0l0", "different", "dscp_to_class default"),
    }
    different = next(d for d in report.differences if "trim_profile" in d.detail)
    assert str(different) == (
        "p0l0: different: trim_profile default → trim_to(size_bytes=300, dscp=1, priority=7), "
        "expected trim_to(size_bytes=128, dscp=20, priority=7)"
    )
    repaired = push(tiny, addresses, pipelines=pipelines)
    assert (repaired.written, repaired.differences) == (7, ())
    assert verify(tiny, addresses, pipelines=pipelines).ok


def test_reconvergence_rewrites_only_groups_and_can_be_undone(leaf_and_spine, pipelines):
    kind, addresses = leaf_and_spine
    plan = load_plan("tiny").single_plane()
    push(plan, addresses, pipelines=pipelines)
    report = reconverge(plan, addresses, [("p0l1", "p0s1")], pipelines=pipelines)
    assert (report.written, report.differences) == (1, ())
    present = read_switch("p0l0", addresses["p0l0"], pipelines["leaf"].p4info)
    shown = [line(pipelines["leaf"].p4info, item.entity) for item in present]
    assert "ecmp_selector group 2 → members 3, at most 2" in shown
    assert not verify(plan, addresses, pipelines=pipelines).ok
    assert reconverge(plan, addresses, [("p0l1", "p0s0")], pipelines=pipelines).ok
    if kind == "embedded":  # no spine left: a group without members, which BMv2 does not take out of a used group
        assert reconverge(plan, addresses, [("p0l1", "p0s0"), ("p0l0", "p0s1")], pipelines=pipelines).ok
    assert reconverge(plan, addresses, [], pipelines=pipelines).ok
    assert verify(plan, addresses, pipelines=pipelines).ok


def test_another_pipeline_is_replaced_and_its_absence_is_a_difference(tiny, leaf_and_spine, pipelines):
    _, addresses = leaf_and_spine
    push(tiny, addresses, pipelines=pipelines)
    swapped: Pipelines = {"leaf": pipelines["spine"], "spine": pipelines["leaf"]}
    wrong = verify(tiny, {"p0s0": addresses["p0s0"]}, pipelines=swapped)
    (difference,) = wrong.differences
    assert difference.kind == "pipeline"
    assert f"cookie {pipelines['spine'].cookie:#x} is loaded, expected leaf" in difference.detail
    assert push(tiny, addresses, pipelines=pipelines).written == 0


def test_the_same_program_in_another_clone_is_no_difference_and_an_edited_one_is(tiny, serving, tmp_path):
    clones = []
    for name in ("one", "two/deeper"):
        shutil.copytree(PROGRAMS, tmp_path / name)
        clones.append(compiled_pipelines(tmp_path / name))
    assert push(tiny, serving.addresses, pipelines=clones[0]).ok
    assert verify(tiny, serving.addresses, pipelines=clones[1]).ok
    route = tmp_path / "one" / "parts" / "route.p4"
    route.write_text(route.read_text().replace("hop_limit - 1", "hop_limit - 2"))
    edited = compiled_pipelines(tmp_path / "one")
    assert {difference.kind for difference in verify(tiny, serving.addresses, pipelines=edited).differences} == {
        "pipeline"
    }


def test_a_crashed_switch_reports_no_pipeline_and_a_push_brings_it_back(tiny, serving, pipelines):
    push(tiny, serving.addresses, pipelines=pipelines)
    with ControlClient(serving.control) as control:
        for op in ("device.crash", "device.start"):
            control.call(op, device=serving.addresses["p1s0"].device_id)
    (difference,) = verify(tiny, serving.addresses, pipelines=pipelines).differences
    assert str(difference).startswith("p1s0: pipeline: none is loaded, expected spine")
    assert push(tiny, {"p1s0": serving.addresses["p1s0"]}, pipelines=pipelines).written > 10
    assert verify(tiny, serving.addresses, pipelines=pipelines).ok


def test_an_unreachable_switch_is_a_difference_and_the_others_are_provisioned(tiny, serving, pipelines):
    with socket.create_server(("127.0.0.1", 0)) as server:
        nowhere = Address(f"127.0.0.1:{server.getsockname()[1]}", 1)
    addresses = {"p0l0": nowhere, "p0l1": serving.addresses["p0l1"], "p0s0": Address(serving.grpc, 999)}
    report = push(tiny, addresses, pipelines=pipelines)
    assert [(d.switch, d.kind) for d in report.differences] == [("p0l0", "unreachable"), ("p0s0", "refused")]
    assert "no device with id 999" in report.differences[1].detail
    assert verify(tiny, {"p0l1": serving.addresses["p0l1"]}, pipelines=pipelines).ok


def test_a_program_without_a_table_that_the_plan_needs_is_named(tiny, serving, pipelines):
    spine_only = {**pipelines, "leaf": pipelines["spine"]}  # spines have no host_facing
    (difference,) = push(tiny, {"p0l0": serving.addresses["p0l0"]}, pipelines=spine_only).differences
    assert difference.kind == "program"
    assert difference.detail.startswith("no table 'host_facing' in the P4Info; tables: SwitchIngress.classify")


def test_a_controller_that_is_not_primary_says_who_is(tiny, serving, pipelines, monkeypatch):
    with GrpcChannels() as channels:
        first = P4RuntimeClient(channels, "p0l0", serving.addresses["p0l0"]).as_primary()
        try:
            with pytest.raises(ClientError, match="election id 1 is in use by another live controller"):
                P4RuntimeClient(channels, "p0l0", serving.addresses["p0l0"]).as_primary()
        finally:
            first.close()
    assert push(tiny, {"p0l0": serving.addresses["p0l0"]}, pipelines=pipelines).ok


def test_a_higher_election_id_that_has_gone_is_taken_over_and_one_that_has_not_is_named(
    tiny, leaf_and_spine, pipelines
):
    _, addresses = leaf_and_spine
    with GrpcChannels() as channels:
        stream = channels.get(addresses["p0s0"].target).stream_stream(
            "/p4.v1.P4Runtime/StreamChannel",
            request_serializer=p4rt.StreamMessageRequest.SerializeToString,
            response_deserializer=p4rt.StreamMessageResponse.FromString,
        )
        request = p4rt.StreamMessageRequest()
        request.arbitration.device_id = addresses["p0s0"].device_id
        request.arbitration.election_id.high = 3
        leave = threading.Event()

        def requests():
            yield request
            leave.wait(WAIT_S)

        call = stream(requests())
        assert next(call).arbitration.status.code == 0
        (difference,) = push(tiny, addresses, pipelines=pipelines).differences
        assert "another controller is primary, with election id 55340232221128654848" in difference.detail
        leave.set()
        assert list(call) == []
    assert push(tiny, addresses, pipelines=pipelines).ok
    assert push(tiny, addresses, pipelines=pipelines).written == 0


def test_refused_updates_are_named(tiny, serving, pipelines):
    push(tiny, serving.addresses, pipelines=pipelines)
    p4info = pipelines["leaf"].p4info
    entity = limit(1, 0, 5)
    with (
        GrpcChannels() as channels,
        P4RuntimeClient(channels, "p0l0", serving.addresses["p0l0"]).as_primary() as client,
    ):
        update = (INSERT, encode(p4info, entity).body)
        with pytest.raises(ClientError, match=r"p0l0 .*: refused #0: ALREADY_EXISTS: table SwitchIngress.*queue_limit"):
            client.write([update], lambda index: f"#{index}")


class FakeLab:
    """What the controller asks of a lab."""

    def __init__(self, plan, addresses):
        self.plan = plan
        self.controller_journal = None
        self._addresses = addresses

    def p4runtime(self, switch):
        address = self._addresses.get(switch.name)
        return (address.target, address.device_id) if address else None


def test_provisioning_a_lab_skips_switches_without_p4runtime_and_raises_what_is_wrong(tiny, serving, pipelines):
    some = {name: serving.addresses[name] for name in ("p0l0", "p0s1")}
    assert provision(FakeLab(tiny, some), list(tiny.switches()), pipelines=pipelines).switches == 2
    broken = {**some, "p0l1": Address(serving.grpc, 999)}
    with pytest.raises(ProvisionError, match=r"1 difference after the push:\np0l1: refused: .*no device with id 999"):
        provision(FakeLab(tiny, broken), list(tiny.switches()), pipelines=pipelines)


def test_only_labs_whose_switches_are_all_linux_need_no_program(tiny, monkeypatch):
    def no_programs():
        raise FileNotFoundError("leaf.p4")

    monkeypatch.setattr(provisioning, "compiled_pipelines", no_programs)
    provisioning.check(replace(tiny, switch="linux"))
    for plan in (tiny, replace(tiny, switch_overrides={"p0s1": "linux"})):
        with pytest.raises(FileNotFoundError):
            provisioning.check(plan)


def test_a_pipelines_digest_does_not_count_line_numbers_and_its_cookie_does(pipelines):
    leaf = pipelines["leaf"]
    moved = leaf.device_config.replace(b'"line": ', b'"line": 1')
    assert moved != leaf.device_config
    edited = replace(leaf, device_config=moved)
    assert edited.digest == leaf.digest
    assert edited.cookie != leaf.cookie


def test_pipelines_of_a_folder_are_read_and_a_missing_file_is_named(pipelines, tmp_path):
    for role, pipeline in pipelines.items():
        (tmp_path / f"{role}.p4info.txtpb").write_text(pipeline.p4info_text)
        (tmp_path / f"{role}.json").write_bytes(pipeline.device_config)
    assert read_pipelines(tmp_path) == pipelines
    (tmp_path / "spine.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"spine\.json: is missing: \./lab switch compile p4/spine\.p4"):
        read_pipelines(tmp_path)


# --- the command line -----------------------------------------------------------------------------------------------


def run(*words, **kwargs):
    code = "import argparse, sys; from cli.commands.controller import register; "
    code += "p = argparse.ArgumentParser(prog='mrclab'); "
    code += "register(p.add_subparsers(required=True)); n = p.parse_args(); sys.exit(n.run(n))"
    command = [sys.executable, "-c", code, "controller", *map(str, words)]
    return ran(command, env={**os.environ, "PYTHONPATH": os.getcwd()}, **kwargs)


def test_the_commands_push_verify_and_show(tiny, serving, pipelines, tmp_path):
    where = ["--plan", "tiny", "--addresses", serving.addresses_file(tmp_path)]
    pushed = run("push", *where)
    assert pushed.returncode == 0, pushed.stderr
    assert pushed.stdout.startswith("pushed 8 switches, 452 entries: ")
    verified = run("verify", *where, "--format", "json")
    assert verified.returncode == 0
    assert json.loads(verified.stdout)["ok"] is True
    shown = run("show", *where, "p0l1")
    assert "my_sid dst_addr=fcbb:bbbb:1001::/48 → end_un()" in shown.stdout
    planned = run("show", "--plan", "tiny", "--planned", "p0l1")
    assert set(planned.stdout.splitlines()) <= set(shown.stdout.splitlines())
    meddle(serving.addresses, "p0l1", pipelines, (DELETE, limit(1, 0, 0)))
    verified = run("verify", *where, "p0l1")
    assert verified.returncode == 1
    assert verified.stdout.startswith("p0l1: missing: queue_limit egress_port=1 traffic_class=0 → drop_beyond(")
    assert run("verify", *where, "p0l0", "p1s1").returncode == 0


def test_the_commands_refuse_what_does_not_exist(serving, tmp_path):
    addresses = serving.addresses_file(tmp_path)
    unknown = run("verify", "--plan", "tiny", "--addresses", addresses, "p9l9")
    assert unknown.returncode == 2
    assert "no switch 'p9l9' with P4Runtime; switches: p0l0, p0l1" in unknown.stderr
    assert "--addresses needs --plan" in run("push", "--addresses", addresses).stderr
    (tmp_path / "bad.json").write_text('{"p0l0": 5}')
    assert 'must be {"SWITCH":' in run("push", "--plan", "tiny", "--addresses", tmp_path / "bad.json").stderr
    assert "./lab controller verify" in run("verify", "--help").stdout


@pytest.mark.smoke
def test_p4runtime_shell_opens_on_a_switch_with_one_command(tiny, serving, pipelines, tmp_path):
    push(tiny, serving.addresses, pipelines=pipelines)
    where = ["--plan", "tiny", "--addresses", serving.addresses_file(tmp_path)]
    script = 'te = table_entry["my_sid"]\nte.read(lambda e: print("GOT", e.action.action_name))\nexit\n'
    shell = run("shell", *where, "p0l0", input=script)
    assert shell.returncode == 0, shell.stderr
    assert "GOT SwitchIngress.segments.end_un" in shell.stdout
    assert push(tiny, serving.addresses, pipelines=pipelines).written == 0
