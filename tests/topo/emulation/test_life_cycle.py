"""Up, down, and everything that may die in between: nothing of a lab outlives `down`."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from common.files import write_json
from tests.helpers.waiting import heeding_interrupts
from topo.emulation import namespace, process, state
from topo.emulation.lab import Lab, _tear_down as tear_down, down
from topo.emulation.state import LabError, NoLabError
from topo.planfile import load_plan

pytestmark = pytest.mark.root

TINY = load_plan("tiny")
KERNEL_TINY = replace(TINY, switch="linux")
KILLS = 20
SEED = 20261121
# Brings a lab up and says how far it is, so that the test can kill it anywhere.
SCRIPT = """
import sys
from dataclasses import replace
from topo.planfile import load_plan
from topo.emulation.lab import Lab
print("begin", flush=True)
steps = iter(range(int(sys.argv[2])))
def hold(what, done, total):
    if next(steps, None) is None:
        print("held", flush=True)
        sys.stdin.read()
Lab.up(replace(load_plan("tiny"), switch=sys.argv[1]), progress=hold)
print("done", flush=True)
sys.stdin.read()
"""
NEVER = 1_000_000  # steps of progress after which a starter stops and waits: more than there are


def links_here():
    """Names of the links in this thread's own namespace."""
    shown = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    return {line.split()[1].split("@")[0].rstrip(":") for line in shown.splitlines()}


def lock_descriptors(root):
    """How many descriptors of the lab's lock this process has open: a wait polls, and the kernel knows none."""
    lock, found = os.stat(root / "lock"), 0
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing's own, or one that another thread has closed
            found += os.path.samestat(os.stat(f"/proc/self/fd/{descriptor}"), lock)
    return found


def lab_processes():
    """Whoever carries any lab's token and lives in this test's private /run."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            here = (
                entry.name.isdecimal()
                and (entry / "ns/mnt").stat().st_ino == os.stat("/proc/thread-self/ns/mnt").st_ino
            )
            if here and process.TOKEN_VARIABLE.encode() in (entry / "environ").read_bytes():
                found.append((entry.name, process.command_line(int(entry.name))))
        except OSError:
            continue
    return found


@pytest.fixture
def nothing_left(private_run):
    before = links_here()
    yield
    assert os.listdir("/run/netns") == []
    assert not state.ROOT.exists()
    assert links_here() == before
    assert lab_processes() == []


def start(kind, hold_after=NEVER):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, kind, str(hold_after)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        preexec_fn=heeding_interrupts,
    )  # fmt: skip


def seconds_to_come_up(kind):
    with start(kind) as starter:
        assert starter.stdout.readline() == b"begin\n"
        began = time.monotonic()
        assert starter.stdout.readline() == b"done\n"
        took = time.monotonic() - began
        starter.kill()
    down()
    return took


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linux", "embedded"])
def test_killed_anywhere_during_up_down_leaves_nothing(nothing_left, kind, require_kind):
    require_kind(kind)
    took_s = seconds_to_come_up(kind)
    generator = random.Random(SEED)
    phases = set()
    for _ in range(KILLS):
        with start(kind) as starter:
            assert starter.stdout.readline() == b"begin\n"
            threading.Event().wait(generator.uniform(0, took_s * 1.1))  # not a wait for anything: the random point
            starter.kill()
            starter.wait()
        try:
            record = state.read_record()
            phases.add(record.phase if record else "nothing yet")
        finally:
            down()
        assert os.listdir("/run/netns") == []
        assert not state.ROOT.exists()
        assert lab_processes() == []
    assert "starting" in phases, "no kill fell into the middle: the test shows nothing"


@pytest.mark.parametrize("kind", ["linux", "embedded"])
def test_an_interrupted_up_cleans_up_by_itself(nothing_left, kind, require_kind):
    require_kind(kind)
    with start(kind) as starter:
        assert starter.stdout.readline() == b"begin\n"
        while not list(Path("/run/netns").iterdir()):
            assert starter.poll() is None
        starter.send_signal(signal.SIGINT)
        came_too_late = starter.communicate()[0] == b"done\n"
    assert down() is came_too_late


@pytest.mark.parametrize("steps", [0, 5, 13, 15, 17])
def test_an_up_that_is_interrupted_after_so_many_steps_cleans_up_by_itself(nothing_left, steps):
    """Before the first namespace, among them, before and after the links, and while hosts are configured."""
    with start("linux", steps) as starter:
        assert starter.stdout.readline() == b"begin\n"
        assert starter.stdout.readline() == b"held\n"
        starter.send_signal(signal.SIGINT)
        assert starter.communicate()[0] == b""
    assert not down()


def test_a_down_that_was_killed_is_finished_by_the_next(nothing_left):
    generator = random.Random(SEED)
    for _ in range(6):
        Lab.up(KERNEL_TINY)
        argv = [sys.executable, "-c", "print('begin', flush=True); from topo.emulation.lab import down; down()"]
        project = str(Path(__file__).parents[3])
        with subprocess.Popen(argv, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": project}) as ending:
            assert ending.stdout is not None
            assert ending.stdout.readline() == b"begin\n"
            threading.Event().wait(generator.uniform(0, 0.4))  # importing takes most of it
            ending.kill()
        down()
        assert os.listdir("/run/netns") == []
        assert not state.ROOT.exists()


def test_down_ends_a_lab_of_another_version_and_refuses_a_record_that_it_cannot_read(nothing_left):
    Lab.up(KERNEL_TINY)
    record = json.loads((state.ROOT / "lab.json").read_text())
    record["plan"]["links"]["colour"] = "green"
    write_json(state.ROOT / "lab.json", record)
    with pytest.raises(LabError, match=r"another version .*links.colour is no key.*`down` removes it"):
        Lab.attach()
    assert down() is True
    Lab.up(KERNEL_TINY)
    path = state.ROOT / "lab.json"
    good = path.read_text()
    path.write_text("{}")
    with pytest.raises(LabError, match=r"lab.json is not this program's"):
        down()
    assert namespace.exists("h0")
    path.write_text(good)
    assert down() is True


def test_down_ends_processes_in_hosts_even_those_that_will_not(nothing_left):
    lab = Lab.up(KERNEL_TINY)
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(1000)"
    mine = lab.popen(TINY.host("h0"), [sys.executable, "-c", stubborn], log="stubborn")
    users = subprocess.Popen(["nsenter", f"--net={lab.netns(TINY.host('h1'))}", "sleep", "1000"])
    log = lab.root / "logs/stubborn.log"
    while "ready" not in log.read_text():
        assert mine.poll() is None
    lab.down()
    assert mine.poll() == -signal.SIGKILL
    assert users.wait() == -signal.SIGTERM


@pytest.mark.parametrize("asked", [Lab.down, lambda lab: lab.is_up(settled=True)], ids=["down", "is_up"])
def test_whoever_brought_a_lab_up_waits_for_a_down_that_is_at_work(nothing_left, asked):
    lab = Lab.up(KERNEL_TINY)
    with ThreadPoolExecutor(1) as pool:
        with state.locked():
            answer = pool.submit(asked, lab)
            while lock_descriptors(lab.root) < 2:  # the holder's, and that of the one who waits
                assert not answer.done(), answer.exception()
            tear_down(lab.root, keep_lock=True)
        assert not answer.result()


def test_down_is_done_when_there_is_nothing_and_a_plan_for_showing_is_not_run(nothing_left):
    assert down() is False
    with pytest.raises(NoLabError, match="no lab is running"):
        Lab.attach()
    with pytest.raises(LabError, match="6144 switches: it is for showing"):
        Lab.up(load_plan("paper"))
    with pytest.raises(LabError, match="switches of 510 ports: P4 switches number 509"):
        Lab.up(replace(TINY, spines=254, hosts_per_leaf=256))


def test_a_strangers_namespace_is_named_and_not_touched(nothing_left):
    namespace.create(["h2"])
    try:
        with pytest.raises(LabError, match="network namespaces h2 exist and are not this lab's"):
            Lab.up(KERNEL_TINY)
        assert namespace.exists("h2")
    finally:
        namespace.delete("h2")


def test_a_failing_provision_leaves_nothing(nothing_left, require_kind):
    require_kind("embedded")

    def refuse(lab, switches):
        raise RuntimeError(f"{len(switches)} switches refused")

    with pytest.raises(RuntimeError, match="8 switches refused"):
        Lab.up(TINY, provision=refuse)
