"""Switches under test: the lab's and the kernel's keep the rules; planted faults are named by the rules they break."""

import argparse
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from common.linux.netns import entered
from conform import bundle
from conform.command import CONFORM
from conform.result import FAIL, PASS, UNREACHED, Result
from conform.rule import Rule, load
from conform.switch import command, printing
from conform.switch.bench import fabric
from conform.switch.device import DeviceError, DeviceFile, SwitchDevice, read_device
from conform.switch.examine import examined, unknown_without_trimming
from controller.pipelines import PROGRAMS
from tests.helpers.conform import switch_tables
from tests.helpers.conform.switches import KINDS, Rig, own

ROOT = Path(__file__).parents[2]
RULES = load(["switch"])
SEEDS = int(os.environ.get("MRCLAB_CONFORM_SEEDS", "1"))
MUTANTS = {
    "the end of a list is not filled with zeros": (
        "segments.p4", "[79:0] ++ 16w0;", "[79:0] ++ 16w7;", {"SWI-002", "SWI-004", "SWI-007", "SWI-049", "SWI-060"},
    ),
    "a uA is shifted and forgotten": (
        "segments.p4",
        "[79:0] ++ 16w0;\n        meta.next_hop = next_hop;",
        "[79:0] ++ 16w0;",
        {"SWI-006"},
    ),
    "the hop limit stays": ("route.p4", "hop_limit = hdr.ipv6.hop_limit - 1", "hop_limit = hdr.ipv6.hop_limit", {
        "SWI-025", "SWI-026", "SWI-049",
    }),
    "an unknown uSID leaves by a default port": (
        "route.p4",
        "unknown_usid_drops.count((bit<32>)(standard_metadata.ingress_port ++ meta.traffic_class));\n"
        "        mark_to_drop(standard_metadata);\n        meta.dropped = true;",
        "meta.next_hop = 3;",
        {"SWI-005", "SWI-012", "SWI-013", "SWI-014"},
    ),
    "packets that are not ECN-capable are marked": ("ecn.p4", "!= ECN_NOT_CAPABLE", "!= ECN_CONGESTION", {"SWI-036"}),
    "a trimmed packet keeps its length": (
        "trim.p4", "hdr.ipv6.payload_length > payload_max ? payload_max :", "", {"SWI-046"},
    ),
    "a trimmed packet waits behind data": ("trim.p4", "standard_metadata.priority = priority;", "", {"SWI-053"}),
    "a trimmed packet is trimmed again": (
        "trimmed_share.p4", "bit<2> color = 0;", "bit<2> color = 0; truncate(120);", {"SWI-043", "SWI-046", "SWI-050"},
    ),
    "the last hop marks as others do": ("last_hop.p4", "hdr.ipv6.dscp = dscp;", "", {"SWI-045"}),
}  # fmt: skip


def results(rig: Rig, device: SwitchDevice, rules: list[Rule] = RULES, seeds: int = SEEDS) -> dict[str, Result]:
    with entered(rig.path):
        found, _ = examined(rig.tester, device, rules, dict.fromkeys(range(seeds)))
    return {rule.id: found.result(rule) for rule in rules}


def failed(told: dict[str, Result]) -> dict[str, str]:
    return {name: one.text for name, one in told.items() if one.outcome == FAIL}


NO_BMV2 = pytest.mark.skipif(shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on PATH")


@pytest.mark.root
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.bmv2, NO_BMV2] if kind == "bmv2" else []) for kind in KINDS]
)
def test_a_switch_that_is_right_breaks_no_rule(kind: str) -> None:
    with own(kind) as (rig, device):
        told = results(rig, device)
    assert failed(told) == {}
    unreached = [name for name, one in told.items() if one.outcome == UNREACHED]
    assert len(unreached) == (25 if kind == "seg6local" else 0), unreached


@pytest.mark.root
@pytest.mark.parametrize("fault", MUTANTS)
def test_a_planted_fault_is_named_by_the_rules_that_it_breaks(fault: str, tmp_path: Path) -> None:
    part, before, after, expected = MUTANTS[fault]
    programs = Path(shutil.copytree(PROGRAMS, tmp_path / "p4"))
    text = (programs / "parts" / part).read_text()
    assert before in text
    (programs / "parts" / part).write_text(text.replace(before, after))
    with own("reference", programs) as (rig, device):
        told = failed(results(rig, device))
    assert set(told) == expected, told


@pytest.mark.root
def test_a_switch_that_forgets_its_tables_at_a_restart_is_told_so() -> None:
    with own("reference") as (rig, device):
        device.restart = lambda: device.asked("forget")  # type: ignore[attr-defined]
        device.about = replace(device.about, patience_s=1.0)
        told = results(rig, device, [rule for rule in RULES if rule.id in ("SWI-001", "SWI-060", "SWI-061")], 1)
    assert {name: one.outcome for name, one in told.items()} == {"SWI-001": PASS, "SWI-060": FAIL, "SWI-061": UNREACHED}


@contextlib.contextmanager
def answering(rig: Rig, answer: bytes | None, after_s: float) -> Iterator[None]:
    """A device at port 1 that sends these bytes behind each frame, so many seconds later; None: the frame itself."""
    with entered(rig.path):
        port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        port.bind((rig.refs[0].interface, 3))
    port.settimeout(0.1)
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                frame, address = port.recvfrom(1 << 16)
                if address[2] != socket.PACKET_OUTGOING and not over.wait(after_s):
                    port.send(answer or frame)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        port.close()


@pytest.mark.root
@pytest.mark.parametrize("answer", ["nothing", "nonsense", "its own frames", "too late"])
def test_a_device_that_is_no_switch_ends_in_a_clear_result(answer: str) -> None:
    about = DeviceFile("none", rate_bps=1_000_000, patience_s=0.5)
    with contextlib.ExitStack() as stack:
        rig = Rig(stack)
        if answer != "nothing":
            sent = bytes(range(100)) if answer == "nonsense" else None
            stack.enter_context(answering(rig, sent, 1.0 if answer == "too late" else 0.0))
        told = results(rig, SwitchDevice(about), seeds=1)
    assert list(failed(told)) == ["SWI-001", "SWI-002", "SWI-003", "SWI-004"]
    assert told["SWI-001"].text.startswith("no packet to a neighbour's uSID left by port")
    assert {one.outcome for name, one in told.items() if name > "SWI-004"} == {UNREACHED}


@pytest.mark.root
def test_a_bundle_of_the_command_is_judged_again_from_its_captures(tmp_path: Path, capsys) -> None:
    file, folder = tmp_path / "device.toml", tmp_path / "bundle"
    file.write_text('[switch]\nname = "kernel"\nmarks = false\ntrims = false\npatience_s = 60.0\n')
    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers())
    with own("seg6local") as (rig, _), entered(rig.path):
        words = ["switch", "--ports", ",".join(rig.tester), "--device", str(file), "--output", str(folder)]
        options = parser.parse_args(words)
        assert options.run(options) == 0
    said = capsys.readouterr().out
    assert "Without trimming, the verdict of these scenarios is unknown: incast" in said
    wrong, again = bundle.verify(folder)
    assert wrong == []
    assert len(again) == len(RULES)
    assert CONFORM.place == "conform.command:register"


def test_the_command_line_is_read_with_the_standard_library_alone() -> None:
    """As `./lab` reads it before anything is installed."""
    folders = [str(ROOT), *(str(ROOT / "packages" / name) for name in ("conform", "p4c"))]
    code = "import argparse, conform.switch.command as s, conform.library.command as l\n"
    code += "kinds = argparse.ArgumentParser().add_subparsers()\ns.register(kinds)\nl.register(kinds)"
    environment = {"PYTHONPATH": os.pathsep.join(folders), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-SP", "-c", code], env=environment, check=True)


def test_scenarios_that_need_trimming_are_found_in_the_library() -> None:
    assert unknown_without_trimming() == ["incast"]


def test_the_printed_tables_are_those_of_the_plan() -> None:
    told = {path: path.read_text() for path in switch_tables.files()}
    assert told == switch_tables.files(), "python -m tests.helpers.conform.switch_tables"
    assert "dev eth7" in printing.printed("linux", ["eth4", "eth5", "eth6", "eth7"])
    assert "my_sid dst_addr=fcbb:bbbb:1000::/48 → end_un()" in printing.printed("p4runtime", [])
    assert fabric().switch_node("p0l0")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[switch]\n", "switch.name is missing"),
        ('[switch]\nname = "x"\ntrim = true\n', "switch.trim is no key here"),
        ('[nic]\nname = "x"\n', "nic is no key here"),
    ],
)
def test_a_wrong_device_file_is_refused_by_name(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "device.toml").write_text(text)
    with pytest.raises(DeviceError, match=said):
        read_device(tmp_path / "device.toml")
    device = SwitchDevice(DeviceFile("x", unknown_drops="echo many"))
    assert device.unknown_drops is not None
    with pytest.raises(DeviceError, match=r"must print a number \(got 'many'\)"):
        device.unknown_drops()
