"""Real processes in virtual time: they compute in no time, wait in the library's calls, and cost only themselves."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from common import uverbs
from endpoint.uverbs.stepped import ProgramStuckError
from running.directory import RunDirectory
from running.programs import Programs
from running.transport_choice import transport
from running.worlds import simulated
from running.worlds.simulated import SimulatedWorld
from scenarios.scenario import Program, Workload
from topo.planfile import load_plan

MILLISECOND = 1_000_000
SECOND = 1_000 * MILLISECOND
LIKE = Workload("all_reduce", {})


@contextmanager
def world(folder: Path, **options: Any) -> Iterator[tuple[SimulatedWorld, RunDirectory]]:
    directory = RunDirectory.create(folder, "stepped", 1)
    made = SimulatedWorld(load_plan("tiny"), transport("mrc"), 1, directory, lambda text: None, **options)
    try:
        yield made, directory
    finally:
        made.close()


def spawn(made: SimulatedWorld, host: str, code: str, name: str = "program") -> Any:
    return made.spawn(host, [sys.executable, "-c", code], f"{host}-{name}")


def printed(directory: RunDirectory, host: str, name: str = "program") -> list[str]:
    return (directory.path / "logs" / f"{host}-{name}.log").read_text().splitlines()


OPEN = "import mrclab, time\ncontext = mrclab.Context()\n"


def prints(folder: Path, code: str, at_s: int = 0, until_s: int = 1, status: int = 0) -> list[str]:
    """What a program on h0 prints that is started at one time and must have ended with this status by the other."""
    with world(folder) as (made, directory):
        made.wait_until(at_s * SECOND)
        process = spawn(made, "h0", code)
        made.wait_until(until_s * SECOND)
        assert process.poll() == status
    return printed(directory, "h0")


def test_computing_takes_no_virtual_time_and_sleeping_exactly_what_was_asked_for(tmp_path: Path) -> None:
    code = OPEN + (
        "print(context.stepped, context.now_ns())\n"
        "deadline = time.monotonic() + 0.3\n"
        "while time.monotonic() < deadline: pass\n"
        "print(context.now_ns())\n"
        "context.sleep(1.25)\n"
        "print(context.now_ns())\n"
        "cq = context.create_cq(4)\n"
        "print(cq.wait(timeout_s=0.5), context.now_ns())\n"
    )
    expected = ["True 2000000000", "2000000000", "3250000000", "[] 3750000000"]
    assert prints(tmp_path, code, at_s=2, until_s=10) == expected


def test_a_message_takes_its_round_trip_between_two_programs(tmp_path: Path) -> None:
    here = OPEN + (
        "import json, pathlib\n"
        "folder = pathlib.Path({folder!r})\n"
        "def meet(mine, other, value):\n"
        "    (folder / 'new').write_text(json.dumps(value))\n"
        "    (folder / 'new').rename(folder / mine)\n"
        "    while not (folder / other).exists(): context.sleep(0.001)\n"
        "    return json.loads((folder / other).read_text())\n"
        "cq = context.create_cq(16)\n"
        "qp, mr = context.create_qp(cq), context.reg_mr(4096)\n"
    )
    sender = here + (
        "qp_info, mr_info = meet('a', 'b', qp.info())\n"
        "qp.connect(qp_info)\n"
        "meet('a2', 'b2', 0)\n"
        "mr.write(b'as written')\n"
        "start = context.now_ns()\n"
        "qp.post_send(mrclab.SendWR(7, mr, 0, 10, mr_info['addr'], mr_info['rkey'], imm_data=42))\n"
        "print([done.wr_id for done in cq.wait()], context.now_ns() - start)\n"
    )
    receiver = here + (
        "qp.post_recv(1)\n"
        "qp.connect(meet('b', 'a', [qp.info(), mr.info()]))\n"
        "meet('b2', 'a2', 0)\n"
        "(done,) = cq.wait()\n"
        "print(done.imm_data, mr.read(10))\n"
        "context.sleep(1)\n"  # its acknowledgement may be wanted again
    )
    with world(tmp_path) as (made, directory):
        first = spawn(made, "h0", sender.replace("{folder!r}", repr(str(tmp_path))))
        second = spawn(made, "h1", receiver.replace("{folder!r}", repr(str(tmp_path))))
        made.wait_until(5 * SECOND)
        assert (first.poll(), second.poll()) == (0, 0)
        base_rtt_ns = made.plan.base_rtt_ns
    assert printed(directory, "h1") == ["42 b'as written'"]
    done, took_ns = printed(directory, "h0")[0].rsplit(" ", 1)
    assert done == "[7]"
    # A packet of ten bytes, and its acknowledgement: the delays of the links, and hardly any time on them.
    assert 0.3 * base_rtt_ns < int(took_ns) < base_rtt_ns


@pytest.mark.parametrize(
    "code",
    [
        OPEN + "time.sleep(600)\n",
        OPEN + "cq = context.create_cq(1)\nwhile True: cq.poll()\n",
        OPEN + "import select\nselect.select([context], [], [])\n",
        "import time\ntime.sleep(600)\n",
    ],
    ids=["sleeps by itself", "polls without waiting", "waits in select", "never opens its NIC"],
)
def test_a_program_that_does_not_come_back_ends_the_run_by_its_name_and_is_ended(tmp_path: Path, code: str) -> None:
    with world(tmp_path, answer_s=1.0) as (made, _):
        process = spawn(made, "h1", code, "stubborn")
        with pytest.raises(ProgramStuckError, match="program h1-stubborn on h1 has computed for more than 1 s"):
            made.wait_until(SECOND)
        pid = process._process.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


BUSY = "import time\nwhile time.process_time() < 4.0: pass\n"
IN_A_CHILD = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}], check=True)\n"


@pytest.mark.parametrize(
    "code", [pytest.param(BUSY, id="itself", marks=pytest.mark.slow), pytest.param(IN_A_CHILD, id="in a child")]
)
def test_a_program_without_a_nic_computes_for_as_long_as_it_likes(tmp_path, monkeypatch, code: str) -> None:
    monkeypatch.setattr(simulated, "QUIET_S", 1.5)
    with world(tmp_path) as (made, directory):
        process = spawn(made, "h1", OPEN + "context.sleep(1)\ncontext.close()\n" + code + "print('computed')\n")
        made.wait_until(2 * SECOND)
        assert process.poll() == 0
        assert made.now_ns() == 2 * SECOND
    assert printed(directory, "h1") == ["computed"]


def test_a_program_that_closes_its_nic_and_hangs_ends_the_run_by_its_name(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(simulated, "QUIET_S", 0.5)
    with world(tmp_path) as (made, _):
        process = spawn(made, "h1", OPEN + "context.close()\nwhile True: time.sleep(0.05)\n", "stubborn")
        made.wait_until(SECOND)
        with pytest.raises(ProgramStuckError, match="program h1-stubborn has no NIC any more, and neither ended nor"):
            process.poll()
        pid = process._process.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_program_that_dies_takes_only_its_own_things_along(tmp_path: Path) -> None:
    with world(tmp_path) as (made, directory):
        dying = spawn(made, "h0", OPEN + "context.create_cq(4)\ncontext.sleep(1)\nimport os; os._exit(3)\n")
        killed = spawn(made, "h0", OPEN + "context.sleep(100)\n", "other")
        living = spawn(made, "h1", OPEN + "context.sleep(3)\nprint(context.now_ns())\n")
        made.wait_until(2 * SECOND)
        assert dying.poll() == 3
        killed._process.send_signal(signal.SIGKILL)
        made.wait_until(4 * SECOND)
        assert living.poll() == 0
        made.wait_until(200 * SECOND)  # the killed one is noticed when its time has come
        assert killed.poll() == -signal.SIGKILL
        host = made.clients["h0"].uverbs
        assert (host.qps(), host.next_timer_ns()) == ([], None)
    assert printed(directory, "h1") == ["3000000000"]
    states = [json.loads(line) for line in directory.journal("h0").read_text().splitlines()]
    ends = [line["cause"] for line in states if line["kind"] == "program" and line["state"] == "close"]
    assert ends == ["the program ended", "the program ended"]


@pytest.mark.parametrize(
    "message", [b"\x09nonsense", b"{not json", bytes([uverbs.WAIT]) + b"short", bytes([uverbs.POST])]
)
def test_a_message_that_the_library_never_sends_ends_the_session_and_not_the_world(tmp_path, message: bytes) -> None:
    code = OPEN + f"context._connection._socket.send({message!r})\ncontext.sleep(1)\n"
    assert "has cut this program off" in prints(tmp_path, code, status=1)[-1]


def test_what_is_told_before_a_program_waits_is_not_slept_over(tmp_path: Path) -> None:
    """The answer to a verb, taken later: a wait that does not know of it would sleep for ever."""
    code = OPEN + (
        "from common import uverbs\n"
        "connection = context._connection\n"
        'connection._send(b\'{"id": 99, "op": "query_device"}\')\n'
        "connection._send(uverbs.pack_wait(connection._taken, None))\n"
        "connection._wait(1, 30.0)\n"
        "connection._take()\n"
        "print(99 in connection._answers)\n"
    )
    assert prints(tmp_path, code) == ["True"]


def test_a_program_has_one_context_and_its_children_none(tmp_path: Path) -> None:
    code = OPEN + (
        "try: mrclab.Context('h0')\n"  # by name: beside this test, others may have NICs in this network namespace
        "except mrclab.DeviceGoneError as error: print(error)\n"
        "import os; print(os.environ.get('MRCLAB_UVERBS'))\n"
    )
    refusal, of_children = prints(tmp_path, code)
    assert refusal.startswith("no NIC of h0 in this network namespace")
    assert of_children == "None"


JOB = (
    *("python", "-m", "mrclab.training", "--rank", "{rank}", "--ranks", "{ranks}", "--meet", "{folder}"),
    *("--journal", "{journal}", "--steps", "4", "--hidden", "32", "--samples", "64", "--name", "job"),
)


def trained(folder: Path, hinder: Callable[[SimulatedWorld], None]) -> dict[str, bytes]:
    """The journals of a small job on all hosts of `tiny`."""
    with world(folder) as (made, directory):
        running = Programs(Program("job", JOB, LIKE), made, directory, _Errors())  # type: ignore[arg-type]
        running.start()
        hinder(made)
        running.end(60.0)
        assert running._running() == []
    return {path.name: path.read_bytes() for path in directory.journals.iterdir()}


class _Errors:
    def write(self, kind: str, **fields: Any) -> None:
        raise AssertionError(fields)


def test_a_job_of_real_processes_is_the_same_to_the_last_line_however_busy_the_machine_is(tmp_path: Path) -> None:
    def undisturbed(made: SimulatedWorld) -> None:
        pass

    def stopped_for_a_while(made: SimulatedWorld) -> None:
        process = made._processes[0]._process
        process.send_signal(signal.SIGSTOP)
        timer = threading.Timer(0.5, lambda: process.send_signal(signal.SIGCONT))
        timer.start()

    first = trained(tmp_path / "one", undisturbed)
    assert first == trained(tmp_path / "two", stopped_for_a_while)
    steps = [json.loads(line) for line in first["job-h0.jsonl"].splitlines() if b'"step"' in line]
    assert [step["compute_ns"] for step in steps] == [0, 0, 0, 0]
    assert all(step["comm_ns"] > 0 for step in steps)


def test_the_weights_are_the_same_to_the_bit_when_a_port_is_lost_under_the_job(tmp_path: Path) -> None:
    def weights(journals: dict[str, bytes]) -> set[tuple[int, str]]:
        lines = [json.loads(line) for text in journals.values() for line in text.splitlines()]
        return {(line["step"], line["weights"]) for line in lines if "weights" in line}

    def lose_a_port(made: SimulatedWorld) -> None:
        made.wait_until(300 * MILLISECOND)
        made.active.inject("port-down", "h0.p0")

    sound, hindered = (trained(tmp_path / name, act) for name, act in (("one", lambda _: None), ("two", lose_a_port)))
    assert weights(sound) == weights(hindered)
    assert len(weights(sound)) == 4
    assert b'"state":"down"' in hindered["h0.jsonl"]


def test_programs_end_with_the_run_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.running.worlds.test_stepped_programs import OPEN, SECOND, spawn, world\n"
        "with world(Path(sys.argv[1])) as (made, directory):\n"
        "    process = spawn(made, 'h0', OPEN + 'import time\\nprint(1, flush=True)\\ntime.sleep(600)\\n')\n"
        "    print(process._process.pid, flush=True)\n"
        "    made.wait_until(SECOND)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        pid = int(runner.stdout.readline())
        runner.kill()
    deadline_s = time.monotonic() + 20.0
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline_s, "the program outlives the run"
        threading.Event().wait(0.02)


def test_ev_probes_and_channels_wait_in_virtual_time(tmp_path: Path) -> None:
    code = OPEN + (
        "answered, began = [], context.now_ns()\n"
        "for ev, port, _ in context.query_ev_profile(0).evs:\n"
        "    try: answered += context.ep_batch_send_wait([('h1', ev, port)], timeout_s=2)\n"
        "    except mrclab.RefusedError: pass  # it leads to another host\n"
        "print(len(answered) > 0, sum(one.rtt for one in answered) == context.now_ns() - began)\n"
        "channel = context.create_comp_channel()\n"
        "events = context.create_ev_event_cq(8, channel)\n"
        "events.req_notify()\n"
        "began = context.now_ns()\n"
        "print(channel.get_cq_event(timeout_s=0.5), context.now_ns() - began)\n"
        "qp = context.create_qp(context.create_cq(8, channel))\n"
        "qp.to_init(); qp.post_recv(1); qp.cq.req_notify(); qp.modify(mrclab.QPState.ERR)\n"
        "print(channel.get_cq_event() is qp.cq, [done.wr_id for done in qp.cq.poll()])\n"
    )
    assert prints(tmp_path, code, at_s=2, until_s=20) == ["True True", "None 500000000", "True [1]"]
