"""A lab that is up, on real links: its commands, and ranks in its hosts that train and leave the lab as it was."""

import functools
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.living_lab import MRCLAB, mrclab, tiny
from tests.helpers.pytorch.world import EXAMPLES, require_torch
from tests.helpers.waiting import eventually, heeding_interrupts
from topo.emulation.lab import Lab
from topo.path import paths

pytestmark = pytest.mark.root
PINGS = 7


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with tiny() as running:
        yield running


@pytest.fixture
def steered(lab: Lab) -> Iterator[None]:
    """Pings from h0 to h3 go by plane 0, p0s0; the answers come by routes."""
    path = next(paths(lab.plan, lab.plan.host("h0"), lab.plan.host("h3")))
    lab.steer(path)
    yield
    lab.unsteer(path.source, path.destination)


def ping(count: int = PINGS) -> None:
    command = ["exec", "h0", "--", "ping", "-c", str(count), "-i", "0.05", "-W", "1", "h3"]
    subprocess.run([sys.executable, "-m", "cli", *command], check=False, capture_output=True, timeout=60)


def counted(*target: str) -> dict[str, dict[str, Any]]:
    told = json.loads(mrclab("counters", *target, "--format", "json"))
    assert told["unit"] == "packets"
    return {row["IFACE"]: row for row in told["ports"]}


def test_counters_count_every_ping_on_its_way(lab: Lab, steered: None) -> None:
    before = counted()
    ping()
    after = counted()
    for switch, port_in, port_out in (("p0l0", 1, 3), ("p0s0", 1, 2), ("p0l1", 3, 2)):
        for column, port in (("RX_OK", port_in), ("TX_OK", port_out)):
            name = f"{switch}-eth{port}"
            assert after[name][column] - before[name][column] >= PINGS, (name, column)
    assert counted("p0l0-p0s0").keys() == {"p0l0-eth3", "p0s0-eth1"}
    text = mrclab("counters", "p0l0")
    assert text.splitlines()[0].split()[:2] == ["IFACE", "PEER"]
    assert "TRIM_PKTS" not in text  # nothing was trimmed, and only what is not zero is shown
    assert "no-trim" in text


def test_a_loss_is_counted_by_its_cause(lab: Lab, steered: None) -> None:
    before = counted("p0l0")["p0l0-eth3"]
    mrclab("fault", "loss", "p0l0>p0s0", "100")
    try:
        ping()
    finally:
        mrclab("undo", "all")
    after = counted("p0l0")["p0l0-eth3"]
    assert after["DROPS"]["loss"] - before["DROPS"].get("loss", 0) == PINGS
    assert after["TX_DRP"] - before["TX_DRP"] == PINGS
    assert "loss 7" in mrclab("counters", "p0l0-p0s0")


def test_a_node_or_link_that_there_is_not_is_refused_with_those_there_are(lab: Lab) -> None:
    assert "p0l9" in mrclab("counters", "p0l9", status=2)
    assert "no link" in mrclab("counters", "h0-p0s0", status=2)


def test_exec_runs_in_the_namespace_and_gives_the_commands_status(lab: Lab) -> None:
    assert "h0-p0" in mrclab("exec", "h0", "--", "ip", "-br", "link")
    assert mrclab("exec", "h0", "--", "sh", "-c", "exit 7", status=7) == ""
    assert "there is no command 'nosuchthing'" in mrclab("exec", "h0", "--", "nosuchthing", status=2)
    assert "must be followed by a command" in mrclab("exec", "h0", status=2)


def test_graph_with_load_draws_what_the_links_carry(lab: Lab, steered: None, tmp_path: Path) -> None:
    background = subprocess.Popen(
        ["nsenter", f"--net={lab.netns(lab.plan.host('h0'))}", "ping", "-i", "0.02", "-s", "4000", "-q", "fd00:1:1::1"],
        stdout=subprocess.DEVNULL,
    )

    def as_sent() -> bool:
        """50 pings a second of 4,102 bytes on a link of 10 Mb/s: 16 %. A machine that stands still sends none."""
        drawn = mrclab("graph", "--load", "1")
        (line,) = [line for line in drawn.splitlines() if '"p0l0" -- "p0s0"' in line]
        return 10 <= int(line.split('label="')[1].split("%")[0]) <= 30

    try:
        eventually(as_sent, "the link carries what pings send")
    finally:
        background.terminate()
        background.wait()
    mrclab("graph", "-o", str(tmp_path / "lab.png"))
    assert (tmp_path / "lab.png").read_bytes()[:4] == b"\x89PNG"


# The last of this file: agents run from here on.


def test_traffic_prints_perftests_columns_and_verifies_every_byte(lab: Lab) -> None:
    text = mrclab("traffic", "write_bw", "h0", "h3", "messages=20", "size=65536")
    assert "BW average[Gb/sec]" in text.splitlines()[0]
    assert f"{20 * 65536:,} bytes verified in memory, 0 wrong" in text
    told = json.loads(
        mrclab("traffic", "all_reduce", "h0", "h1", "h2", "h3", "rounds=2", "size=65536", "--format", "json")
    )
    assert told["bytes_wrong"] == 0
    assert told["ranks"].keys() == {"h0", "h1", "h2", "h3"}
    assert "no traffic" in mrclab("traffic", "list")


def test_traffic_in_the_background_lives_through_a_cut_and_a_drain_and_is_stopped_by_name(lab: Lab) -> None:
    mrclab("traffic", "write_bw", "h0", "h3", "--background", "--as", "stream")
    try:
        (row,) = json.loads(mrclab("traffic", "list", "--format", "json"))
        assert (row["name"], row["kind"], row["ranks"], row["state"]) == ("stream", "write_bw", ["h0", "h3"], "running")
        assert "traffic 'stream' is there already" in mrclab(
            "traffic", "write_bw", "h1", "h2", "--as", "stream", status=2
        )
        assert "agents run already, with transport mrc" in mrclab(
            "traffic", "write_bw", "h1", "h2", "--transport", "roce", status=2
        )
        mrclab("fault", "link-down", "p0l0-p0s0")
        mrclab("fault", "drain", "p1s0")
        mrclab("undo", "all")
    finally:
        stopped = mrclab("traffic", "stop", "stream")
    assert ", 0 wrong" in stopped
    assert int(stopped.split(" bytes verified")[0].split("\n")[-1].replace(",", "")) > row["bytes_verified"]
    assert "no traffic 'stream'; there is: none" in mrclab("traffic", "stop", "stream", status=2)


def test_ctrl_c_twice_stops_the_traffic_all_the_same(lab: Lab) -> None:
    words = [sys.executable, "-m", "cli", "traffic", "write_bw", "h0", "h3", "--seconds", "60", "--as", "cut-off"]
    ours = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=ours) as running:
        while not any(row["bytes_verified"] for row in json.loads(mrclab("traffic", "list", "--format", "json"))):
            assert running.poll() is None
        for _ in range(2):
            running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
    assert "cut-off" not in mrclab("traffic", "list")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ping", "h0", "h1"), "no workload 'ping': valid are write_bw, "),
        (("write_bw", "h0"), "write_bw must be given 2 hosts (got 1)"),
        (("write_bw", "h0", "h9"), "h9"),
        (("write_bw", "h0", "h0"), "each host once"),
        (("write_bw", "h0", "h1", "sise=3"), "write_bw has no option 'sise' (did you mean size?): valid are qps, "),
        (("write_lat", "h0", "h1", "--seconds", "3"), "write_lat ends by its own count"),
        (("stop",), "must be followed by a name, or all"),
    ],
)
def test_traffic_that_cannot_be_is_refused_with_what_can(lab: Lab, words: tuple[str, ...], said: str) -> None:
    assert said in mrclab("traffic", *words, status=2)
    assert "no traffic" in mrclab("traffic", "list")


def test_stop_all_ends_the_agents_and_the_next_traffic_starts_them_anew(lab: Lab) -> None:
    mrclab("traffic", "write_bw", "h0", "h3", "--background")
    assert "ended 1 workloads and 4 agents" in mrclab("traffic", "stop", "all")
    assert "no agent runs" in mrclab("traffic", "list")
    words = ("write_lat", "h0", "h3", "messages=5", "--transport", "mrc-single-path")
    assert "5" in mrclab("traffic", *words).splitlines()[1].split()
    assert "ended 0 workloads and 4 agents" in mrclab("traffic", "stop", "all")


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark on PATH")
def test_a_capture_of_several_links_goes_through_a_pipe_and_is_decoded_without_false_alarms(lab: Lab) -> None:
    mrclab("traffic", "write_bw", "h0", "h3", "--background")
    mrclab_words = f"{sys.executable} -m cli"
    links = "h0-p0l0 p0l0-p0s0 p0l0-p0s1"
    try:
        piped = subprocess.run(
            f"{mrclab_words} capture {links} --write - --count 300 --seconds 30"
            " | tshark -r - -T fields -e frame.interface_name",
            shell=True, capture_output=True, text=True, check=True, timeout=120,
        ).stdout  # fmt: skip
        assert set(piped.split()) == set(links.split())
        assert len(piped.split()) == 300
        decoded = mrclab("capture", "h0-p0l0", "--decode", "--count", "100", "--seconds", "30")
        assert "MRC" in decoded
        assert "checksum" not in decoded.lower()
    finally:
        mrclab("traffic", "stop", "all")
    assert not Path("-").exists()


def test_trace_uses_the_tables_that_the_switches_hold_now(lab: Lab) -> None:
    before = json.loads(mrclab("trace", "h0", "h3", "--format", "json"))
    assert before["reached"] == "h3"
    assert len(before["hops"]) == 3
    mrclab("fault", "switch-crash", before["hops"][1]["switch"])
    try:
        mrclab("trace", "h0", "h3", "--format", "json", status=1)
    finally:
        mrclab("undo", "all")
    assert json.loads(mrclab("trace", "h0", "h3", "--format", "json")) == before


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (("link-down", "p0l0-p0s0"), "p0l0>p0s0 is down (fault: link-down p0l0-p0s0)"),
        (("switch-crash", "p0s0"), "p0s0 has crashed"),
    ],
)
def test_trace_and_paths_agree_with_a_ping_along_the_path(lab: Lab, fault: tuple[str, ...], said: str) -> None:
    def arrives() -> bool:
        command = ["ip", "netns", "exec", "h0", "ping", "-c", "3", "-i", "0.2", "-W", "1", "fd00:1:1::1"]
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0

    path = next(paths(lab.plan, lab.plan.host("h0"), lab.plan.host("h3")))
    lab.steer(path)
    try:
        assert arrives()
        mrclab("trace", "h0", "h3")
        mrclab("fault", *fault)
        traced = mrclab("trace", "h0", "h3", status=1)
        listed = mrclab("paths", "h0", "h3")
        assert not arrives()
        assert said in traced
        assert traced.endswith("no host receives it\n")
        assert said in listed
        assert listed.count("DEAD") == 1
        assert "DEAD" not in mrclab("paths", "h0", "h3", "--plan", "tiny")
    finally:
        mrclab("undo", "all")
        lab.unsteer(path.source, path.destination)


def test_each_rank_is_in_its_host_and_may_import_mrclab_and_nothing_else_of_the_lab(lab: Lab) -> None:
    code = (
        "import os, mrclab, importlib.util as find; print(os.environ['RANK'], os.environ['WORLD_SIZE'],"
        " os.environ['MASTER_ADDR'], mrclab.get_device_list(), find.find_spec('topo'))"
    )
    told = mrclab("launch", "--ranks", "h2,h0", "--", "/usr/bin/python3", "-P", "-c", code)
    assert sorted(told.splitlines()) == [
        f"h0: 1 2 {_address(lab, 'h2')} ['h0'] None",
        f"h2: 0 2 {_address(lab, 'h2')} ['h2'] None",
    ]


def _address(lab: Lab, host: str) -> str:
    told = mrclab("exec", host, "--", "echo", host).strip()
    assert told != host  # names of hosts stand for addresses
    return told


def test_a_script_trains_on_real_links(lab: Lab) -> None:
    python = require_torch()
    told = mrclab("launch", "--ranks", "h0..h3", "--", python, str(EXAMPLES / "ddp.py"), "--steps", "4")
    losses = [float(line.split()[-1]) for line in told.splitlines() if line.startswith("h0: step")]
    assert len(losses) == 4
    assert losses[-1] < losses[0]


def test_what_cannot_be_started_is_told_and_ctrl_c_ends_all(lab: Lab) -> None:
    assert "no command 'nosuchthing'" in mrclab("launch", "--ranks", "h0", "--", "nosuchthing", status=2)
    assert "must be followed by a command" in mrclab("launch", "--ranks", "h0", status=2)
    assert "h99" in mrclab("launch", "--ranks", "h99", "--", "true", status=2)
    process = subprocess.Popen(
        [*MRCLAB, "launch", "--ranks", "h0..h1", "--", "sh", "-c", "echo here; exec sleep 1000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heeding_interrupts,
    )  # fmt: skip
    assert process.stdout is not None
    assert {process.stdout.readline(), process.stdout.readline()} == {"h0: here\n", "h1: here\n"}
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    sleeping = ["pgrep", "-f", "sleep 1000"]
    eventually(lambda: subprocess.run(sleeping, check=False, capture_output=True).returncode == 1, "all have ended")
