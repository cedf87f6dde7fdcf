"""Programs in C in virtual time: time moves only while they wait in the library, and libc's clocks are the lab's."""

import itertools
import json
import os
import select
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from cli import main as cli
from common import uverbs
from running import sdk
from running.directory import RunDirectory
from running.transport_choice import transport
from running.worlds.simulated import SimulatedWorld
from tests.libmrc.compiled import REQUIREMENTS, SANITIZERS, compiled
from topo.planfile import load_plan

pytestmark = REQUIREMENTS
ROOT = Path(__file__).parents[2]
SECOND = 1_000_000_000
WRITES = 12
BYTES = 64 * 4096


def pages_written(program: str, folder: Path) -> list[list[str]]:
    """What rank 0 and rank 1 of `stepped.c` say."""
    folder.mkdir()
    directory = RunDirectory.create(folder, "stepped", 1)
    with closing(SimulatedWorld(load_plan("tiny"), transport("mrc"), 1, directory, lambda text: None)) as made:
        made.wait_until(2 * SECOND)
        given = sdk.environment(sdk.library())
        environment = ["env", *(f"{name}={value}" for name, value in given.items())]
        words = [[*environment, program, str(rank), str(folder), str(WRITES)] for rank in range(2)]
        processes = [made.spawn(f"h{rank}", words[rank], f"h{rank}") for rank in range(2)]
        made.wait_until(60 * SECOND)
        logs = [(directory.path / "logs" / f"h{rank}.log").read_text() for rank in range(2)]
        assert [process.poll() for process in processes] == [0, 0], logs[0][-300:] + logs[1][-300:]
    for log in logs:
        assert log.startswith("libmrc: warning: virtual time: this program's clocks and sleeps are the lab's")
    return [[line for line in log.splitlines() if not line.startswith("libmrc")] for log in logs]


def test_programs_in_c_are_stepped_and_repeat_to_the_nanosecond(tmp_path: Path) -> None:
    program = compiled(ROOT / "tests" / "libmrc" / "stepped.c", tmp_path)
    here, there = pages_written(program, tmp_path / "first")
    times = [float(line.split()[-1]) for line in there]
    assert (
        [line.split()[0] for line in here] == [line.split()[0] for line in there] == [str(at) for at in range(WRITES)]
    )
    plan = load_plan("tiny")
    wire_s = BYTES * 8 / (plan.planes * plan.links.host_rate_bps)
    assert all(after - before > wire_s + 0.010 for before, after in itertools.pairwise(times))
    assert times[-1] < 6 + WRITES * (2 * wire_s + 0.010)
    assert pages_written(program, tmp_path / "again") == [here, there]


def test_the_program_of_the_docs_is_a_program_of_a_run_in_virtual_time(tmp_path, capsys) -> None:
    program = compiled(ROOT / "docs" / "programs" / "first_write.c", tmp_path)
    words = ["run", "smoke", "--world", "simulated", "--plain", "--runs", str(tmp_path / "runs"), "--ranks", "h0,h1"]
    assert cli.main([*words, "--program", f"{program} {{rank}} {{folder}}"]) == 3  # over before the first fault
    assert "before any fault" in capsys.readouterr().out
    logs = tmp_path / "runs" / "latest" / "logs"
    assert "success: written from memory to memory\n" in (logs / "h0-program.log").read_text()
    assert "success: the peer has it\n" in (logs / "h1-program.log").read_text()


def test_a_program_that_meets_by_tcp_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "meets.c"
    source.write_text(
        "#include <mrc.h>\n#include <sys/socket.h>\n"
        "int main(void) { return connect(0, 0, 0) + !ibv_get_device_list(0); }\n"
    )
    program = compiled(source, tmp_path)
    words = ["run", "smoke", "--world", "simulated", "--plain", "--runs", str(tmp_path / "runs")]
    assert cli.main([*words, "--program", program]) == 2
    said = capsys.readouterr().err
    assert f"--program: {program} imports connect: programs that meet by TCP run on real links only" in said
    assert not (tmp_path / "runs").exists()


def test_a_program_that_has_closed_its_socket_goes_on_without_a_nic(tmp_path: Path) -> None:
    source = tmp_path / "closed.c"
    source.write_text(
        "#include <errno.h>\n#include <infiniband/verbs.h>\n#include <unistd.h>\n"
        "int main(void) {\n"
        "    struct ibv_device **list = ibv_get_device_list(0);\n"
        "    if (!list[0] || ibv_open_device(list[0]) || errno != EBADF)\n"
        "        return 2;\n"
        "    ibv_free_device_list(list);\n"
        "    return usleep(1);\n"
        "}\n"
    )
    program = compiled(source, tmp_path, *SANITIZERS)
    environment = {**os.environ, "MRCLAB_UVERBS": "999:h0"}  # no such descriptor is open
    done = subprocess.run([program], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "MRCLAB_UVERBS must name an open socket (descriptor 999: Bad file descriptor)" in done.stderr


OPENING = """
#include <infiniband/verbs.h>
#include <pthread.h>
#include <unistd.h>

static void *sleeps(void *unused)
{
    char told;
    (void)unused;
    return read(0, &told, 1) == 1 && !usleep(1000) && write(1, "s", 1) == 1 ? NULL : (void *)1;
}

int main(void)
{
    pthread_t thread;
    void *failed = NULL;
    struct ibv_device **list = ibv_get_device_list(0);
    if (!list[0] || pthread_create(&thread, NULL, sleeps, NULL) || !ibv_open_device(list[0]))
        return 1;
    pthread_join(thread, &failed);
    return failed ? 2 : 0;
}
"""
"""Opens its NIC in one thread; the other sleeps when it is told to, and says so afterwards."""


def opened(number: int) -> bytes:
    """The agent's answer to the request of that number to open its NIC."""
    about = {"address": "fd00::1", "pmtu": 4096, "transport": "mrc", "ports": []}
    result = {**about, "limits": asdict(uverbs.ProgramLimits())}
    return json.dumps({"id": number, "ok": True, "result": result}).encode()


@contextmanager
def by_hand(program: str) -> Iterator[tuple[socket.socket, subprocess.Popen[bytes]]]:
    """A program in virtual time whose agent is the test: the agent's end of the socket, and the process."""
    agent, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    agent.settimeout(60)
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = {**os.environ, uverbs.STEPPED: f"{theirs.fileno()}:h0"}
    with agent, theirs, subprocess.Popen([program], pass_fds=[theirs.fileno()], env=environment, **pipes) as process:
        try:
            yield agent, process
        finally:
            process.kill()


def test_a_thread_that_sleeps_does_not_touch_a_nic_that_another_still_opens(tmp_path: Path) -> None:
    source = tmp_path / "opening.c"
    source.write_text(OPENING)
    program = compiled(source, tmp_path)
    with by_hand(program) as (agent, process):
        opening = json.loads(agent.recv(uverbs.MESSAGE_BYTES_MAX))
        assert opening["op"] == "open"
        assert uverbs.unpack_wait(agent.recv(uverbs.MESSAGE_BYTES_MAX)) == (0, None)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"x")
        process.stdin.flush()
        heard, _, _ = select.select([agent.fileno(), process.stdout.fileno()], [], [], 60)
        assert heard == [process.stdout.fileno()], "the sleep went through the NIC, whose answer another thread awaits"
        agent.send(opened(opening["id"]))
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors.decode()


LISTENING = """
#include <infiniband/verbs.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static void *listens(void *opened)
{
    struct ibv_async_event event;
    return ibv_get_async_event(opened, &event) ? NULL : opened;
}

int main(void)
{
    pthread_t thread;
    struct ibv_context *opened = ibv_open_device(*ibv_get_device_list(0));
    if (!opened || pthread_create(&thread, NULL, listens, opened))
        return 1;
    for (clock_t begun = clock(); clock() < begun + CLOCKS_PER_SEC / 20;) /* until the other waits */
        ;
    return usleep(1000);
}
"""
"""One thread waits for events, as NCCL's plugin does, and the other sleeps."""


def test_a_thread_that_waits_for_events_does_not_hold_up_the_others(tmp_path: Path) -> None:
    (source := tmp_path / "listening.c").write_text(LISTENING)
    given = [f"{name}={value}" for name, value in sdk.environment(sdk.library()).items()]
    directory = RunDirectory.create(tmp_path, "stepped", 1)
    with closing(SimulatedWorld(load_plan("tiny"), transport("mrc"), 1, directory, lambda text: None)) as made:
        process = made.spawn("h0", ["env", *given, compiled(source, tmp_path)], "h0")
        made.wait_until(SECOND)
        assert process.poll() == 0


RIVALS = """
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>

static pthread_barrier_t both;
static struct ibv_device **list;
static char won, busy;

static void *opens(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&both);
    if (ibv_open_device(list[0]))
        return &won;
    return errno == EBUSY ? &busy : NULL;
}

int main(void)
{
    pthread_t threads[2];
    void *ends[2];
    list = ibv_get_device_list(0);
    pthread_barrier_init(&both, NULL, 2);
    for (int at = 0; at < 2; at++)
        if (!list[0] || pthread_create(&threads[at], NULL, opens, NULL))
            return 1;
    for (int at = 0; at < 2; at++)
        pthread_join(threads[at], &ends[at]);
    return (ends[0] == &won && ends[1] == &busy) || (ends[0] == &busy && ends[1] == &won) ? 0 : 2;
}
"""
"""Two threads open the NIC at once: one has it, and the other is told that it is taken."""


def test_of_two_threads_that_open_the_nic_at_once_one_has_it(tmp_path: Path) -> None:
    source = tmp_path / "rivals.c"
    source.write_text(RIVALS)
    program = compiled(source, tmp_path, "-g", "-O1", "-fsanitize=thread")
    with by_hand(program) as (agent, process):
        agent.send(opened(json.loads(agent.recv(uverbs.MESSAGE_BYTES_MAX))["id"]))
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors.decode()
    assert "a process in virtual time opens its NIC once" in errors.decode()
