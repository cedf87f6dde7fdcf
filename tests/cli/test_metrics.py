"""Counters for Prometheus: read by its Python client's parser, checked by promtool, compared with a lab's."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.metrics.collecting import host_metrics, switch_metrics
from cli.metrics.exposition import CONTENT_TYPE, ExposedMetric, text
from cli.metrics.serving import SILENT_S
from running.view.port_rows import RX_DROPS, TX_DROPS, managed_row
from switch.engine import PortCounters
from tests.helpers.living_lab import MRCLAB, mrclab, tiny
from topo.graph import ports
from topo.planfile import load_plan

parser = pytest.importorskip("prometheus_client.parser", reason="needs prometheus-client (the extra dev)")

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana.json"
SERVING = [sys.executable, "-m", "cli.metrics.serving"]
LIMIT_S = 240
PATIENCE_S = 20
QP = {"qp": 256, "peer": "h1", "workload": "main", "cwnd_bytes": 4096, "inflight_bytes": 0, "rtt_ns": 1_500_000}
QP |= {"acked_bytes": 7, "data_packets": 1, "retransmits": 2, "rto": 3, "trims": 4, "ecn": 5, "nacks": 6, "pending": 0}
QP |= {"received_bytes": 8, "evs_out": 0}
PORT = {"port": 1, "plane": 0, "up": True, "tx_packets": 1, "tx_bytes": 2, "rx_packets": 3, "rx_bytes": 4}


def made_up() -> list[ExposedMetric]:
    """Every metric of ports and queue pairs, with at least one sample."""
    plan = load_plan("tiny")
    chosen = list(ports(plan, plan.node("p0l0")))[:1]
    row = {"PEER": "h0", "RX_OK": 1, "TX_OK": 2, "TRIM_PKTS": 3, "ECN_MARKED": 4, "QUEUE": 5, "DROPS": {"loss": 6}}
    return [
        *switch_metrics(chosen, [row], {"p0l0": []}),
        *host_metrics({"h0": {"ports": [PORT], "qps": [QP]}, "h1": None}),
    ]  # fmt: skip


def parsed(exposition: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Samples by name and labels, as Prometheus' own client reads them."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in parser.text_string_to_metric_families(exposition):
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def value(found: dict[Any, float], name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def test_prometheus_client_reads_every_sample_with_its_value() -> None:
    found = parsed(text(made_up()))
    port = {"switch": "p0l0", "plane": "0", "port": "1", "peer": "h0"}
    assert value(found, "mrclab_switch_port_drop_packets_total", **port, cause="loss") == 6
    assert value(found, "mrclab_switch_port_queue_packets", **port) == 5
    qp = {"host": "h0", "peer": "h1", "qp": "256", "workload": "main"}
    assert value(found, "mrclab_qp_rtt_seconds", **qp) == pytest.approx(0.0015)
    assert value(found, "mrclab_qp_trims_total", **qp) == 4
    assert (value(found, "mrclab_agent_up", host="h0"), value(found, "mrclab_agent_up", host="h1")) == (1, 0)
    assert len(found) == sum(len(metric.samples) for metric in made_up())


def test_every_cause_of_drops_is_there_before_the_first_drop() -> None:
    """rate() and increase() need a sample from before: a series that begins with its first burst loses it."""
    plan = load_plan("tiny")
    leaf, spine = (next(iter(ports(plan, plan.node(name)))) for name in ("p0l0", "p0s0"))
    manager = dict.fromkeys(PortCounters._fields, 0) | {"queue_packets": 0, "drop_loss": 6}
    rows = [managed_row(plan, leaf, manager, {}), managed_row(plan, spine, manager | {"drop_loss": 0}, {})]
    causes = {"p0l0": ["no_route", "trim_full"], "p0s0": None}
    found = parsed(text(switch_metrics([leaf, spine], rows, causes)))
    name = "mrclab_switch_port_drop_packets_total"
    drops = {
        switch: {
            dict(labels)["cause"]: count
            for (n, labels), count in found.items()
            if n == name and ("switch", switch) in labels
        }
        for switch in ("p0l0", "p0s0")
    }
    managed = {cause.removeprefix("drop_"): 0 for cause in (*RX_DROPS, *TX_DROPS)}
    assert drops["p0l0"] == {**managed, "no_route": 0, "trim_full": 0, "loss": 6}
    assert drops["p0s0"] == managed


def test_quotes_lines_and_backslashes_survive() -> None:
    metric = ExposedMetric("mrclab_odd", "gauge", 'a "help"\nof two lines \\ ')
    metric.add(0.1, label='a "quote"\n\\')
    ((key, found),) = parsed(text([metric])).items()
    assert (key, found) == (("mrclab_odd", frozenset({("label", 'a "quote"\n\\')})), 0.1)


def test_names_follow_the_conventions() -> None:
    """Prometheus, "Metric and label naming": a prefix, base units, `_total` for counters and for nothing else."""
    for metric in made_up():
        assert re.fullmatch(r"mrclab(_[a-z]+)+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert not re.search(r"_(ns|ms|us|kb|mb|bits|milliseconds|kilobytes)(_|$)", metric.name)
        assert metric.help.endswith(".")
        assert all({"le", "quantile", "instance", "job"}.isdisjoint(labels) for labels, _ in metric.samples)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (apt-get install prometheus)")
def test_promtool_has_nothing_against_it() -> None:
    argv = ["promtool", "check", "metrics"]
    done = subprocess.run(argv, input=text(made_up()), capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    told = json.loads(DASHBOARD.read_text())
    expressions = [target["expr"] for panel in told["panels"] for target in panel["targets"]]
    asked = {name for expression in expressions for name in re.findall(r"mrclab_\w+", expression)}
    assert len(asked) > 5
    assert asked <= {metric.name for metric in made_up()} | {"mrclab_faults"}
    assert len({panel["id"] for panel in told["panels"]}) == len(told["panels"])


@contextmanager
def served(content: str, *starter: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """The serving process with this text, and its port."""
    argv = [*starter, *SERVING, "0"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline().removeprefix("ready "))
            server.stdin.write(json.dumps(content) + "\n")
            server.stdin.flush()
            yield port, server
        finally:
            server.stdin.close()
            assert server.wait(LIMIT_S) == 0


def get(port: int, path: str = "/metrics", method: str = "GET", **headers: str) -> tuple[int, str, str | None]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), answer.headers.get("Content-Type")


def test_the_server_gives_the_text_to_loopback_names_only_as_scrapers_expect_and_nothing_else() -> None:
    with served("# a text\n") as (port, _):
        assert get(port) == (200, "# a text\n", CONTENT_TYPE)
        assert get(port, Host=f"localhost:{port}")[0] == 200
        assert get(port, Host=f"elsewhere.example:{port}")[0] == 404
        assert get(port, "/")[0] == 404
        assert get(port, method="POST")[0] == 501
    with served("# a text\n") as (port, _):
        assert get(port, "/metrics?collect=ports") == (200, "# a text\n", CONTENT_TYPE)
        assert get(port, "/metrics", "HEAD") == (200, "", CONTENT_TYPE)
        assert get(port, "/", "HEAD")[0] == 404
        assert get(port, "/metricsx?collect=ports")[0] == 404
    # As in a label of an agent that does not clean the names of programs.
    with served("# caf\udce9\n") as (port, _):
        assert get(port) == (200, "# caf?\n", CONTENT_TYPE)


def test_a_connection_that_asks_for_nothing_keeps_no_other_waiting() -> None:
    """So many that a server of one connection at a time, which waits for each, answers after the asker's patience."""
    with served("# a text\n") as (port, _), ExitStack() as idle:
        for _ in range(round(PATIENCE_S / SILENT_S) + 1):
            idle.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert get(port) == (200, "# a text\n", CONTENT_TYPE)


def test_many_connections_neither_keep_scrapers_waiting_nor_fill_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    """The oldest is closed. Some go before their answer comes."""
    few_files = "sh", "-c", 'ulimit -n 64 && exec "$@"', "sh"
    with served("# a text\n", *few_files) as (port, _), ExitStack() as idle:
        for number in range(100):
            silent = idle.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S))
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as gone:
                gone.sendall(b"GET /metrics HTTP/1.0\r\n")
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closed by a reset
            if number % 8 == 0:
                assert get(port)[0] == 200
        assert get(port) == (200, "# a text\n", CONTENT_TYPE)
        silent.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert silent.recv(64).startswith(b"HTTP/1.0 400 ")
    assert capfd.readouterr().err == ""


def test_a_port_that_is_taken_is_named() -> None:
    with served("") as (port, _):
        done = subprocess.run([*SERVING, str(port)], input="", capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout) == (0, "Address already in use\n")


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("--port", "70000"), "--port must be between 0 and 65535 (got 70000)"),
        (("--every", "0.1"), "--every must be between 1 and 3600 s (got 0.1)"),
    ],
)
def test_wrong_options_are_refused(words: tuple[str, ...], rule: str, refused) -> None:
    assert rule in refused("metrics", *words)


def until_gone(pid: int) -> None:
    """Returns when the process has ended; an AssertionError when it does not."""
    end_s = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and "(zombie)" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < end_s, f"process {pid} is still there"
        os.sched_yield()


@pytest.fixture(scope="module")
def lab() -> Iterator[None]:
    with tiny():
        mrclab("traffic", "write_bw", "h0", "h3", "messages=20")
        yield


@pytest.mark.root
class TestOfALab:
    def test_its_switches_and_hosts_count_as_the_lab_says(self, lab: None) -> None:
        found = parsed(mrclab("metrics", "--once"))
        counted = json.loads(mrclab("counters", "--format", "json"))["ports"]
        sent = {(row["IFACE"].partition("-")[0], row["PEER"]): row["TX_OK"] for row in counted}
        name = "mrclab_switch_port_transmit_packets_total"
        told = {(dict(own)["switch"], dict(own)["peer"]): count for (n, own), count in found.items() if n == name}
        assert told.keys() == sent.keys()
        assert sum(told.values()) > 100
        assert all(told[end] <= sent[end] for end in told)
        assert value(found, "mrclab_agent_up", host="h3") == 1
        assert value(found, "mrclab_lab_info", lab="default", plan="tiny") == 1

    def test_it_is_served_without_rights_on_loopback_until_the_command_is_killed(self, lab: None) -> None:
        argv = [*MRCLAB, "metrics", "--port", "0", "--every", "1"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as command:
            assert command.stdout is not None
            port = int(re.findall(r"http://127\.0\.0\.1:(\d+)/metrics", command.stdout.readline())[0])
            status, exposition, _ = get(port)
            assert status == 200
            assert parsed(exposition)
            (server,) = map(int, Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split())
            uids = re.findall(r"^Uid:(.*)$", Path(f"/proc/{server}/status").read_text(), re.MULTILINE)[0].split()
            assert "0" not in uids
            os.kill(command.pid, signal.SIGKILL)
        until_gone(server)
