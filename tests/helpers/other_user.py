"""Another user of the machine as a process: it tries what a stranger may try, and says what it achieved.

The program below needs the standard library only. It is given as text to a Python that every user may run, because a
checkout may lie where other users cannot look.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PYTHON = Path("/usr/bin/python3")
LIMIT_S = 120

PROGRAM = r"""
import ctypes, fcntl, json, os, resource, signal, socket, sys
job = json.loads(sys.stdin.readline())
held, children, libc = [], [], ctypes.CDLL(None, use_errno=True)
KINDS = socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM

def tried(work, *words):
    try:
        return work(*words) is not False
    except (OSError, EOFError):
        return False

def opened(path):
    held.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    return held[-1]

def lock(path):
    fcntl.flock(opened(path), fcntl.LOCK_EX | fcntl.LOCK_NB)

def read(path):
    os.listdir(path) if os.path.isdir(path) else os.read(opened(path), 1)

def connect(place):
    for kind in KINDS:
        made = socket.socket(socket.AF_UNIX, kind)
        made.settimeout(5)
        held.append(made)
        if tried(made.connect, place.replace("@", "\0", 1) if place.startswith("@") else place):
            return tried(made.send, b'{"id": 1, "op": "ping"}\n')
    return False

def change(path):
    beside = path + ".theirs"
    folder = os.path.isdir(path)
    ways = [(os.rename, path, beside), (os.chmod, path, 0o777), (os.chown, path, os.getuid(), -1)]
    ways += [(os.symlink, "/etc/passwd", beside), (os.utime, path), (os.mkdir, beside)]
    if folder:
        ways += [(os.rmdir, path), (os.mkdir, path + "/theirs"), (os.symlink, "/etc/passwd", path + "/theirs")]
    else:
        ways += [(os.unlink, path), (os.truncate, path, 0), (os.open, path, os.O_WRONLY | os.O_APPEND)]
    return any([tried(*way) for way in ways])

def signals(pid):
    ways = [(os.kill, pid, number) for number in (0, signal.SIGSTOP, signal.SIGCONT, signal.SIGTERM)]
    ways += [(lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL),)]
    return any([tried(*way) for way in ways])

def look_into(pid):
    place = f"/proc/{pid}/"
    ways = [(opened, place + name) for name in ("environ", "mem", "maps", "auxv")]
    ways += [(os.listdir, place + "fd"), (os.readlink, place + "cwd"), (os.readlink, place + "exe")]
    ways += [(resource.prlimit, pid, resource.RLIMIT_CPU, (1, 1)), (os.sched_setaffinity, pid, [0])]
    ways += [(os.setpriority, os.PRIO_PROCESS, pid, 19), (os.sched_setscheduler, pid, os.SCHED_IDLE, os.sched_param(0))]
    return any([tried(*way) for way in ways])

def enter(path):
    if libc.setns(opened(path), 0) == 0:
        return True
    child = os.fork()  # with all rights in a new user namespace
    if child == 0:
        libc.unshare(0x10000000)
        os._exit(0 if libc.setns(opened(path), 0) == 0 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def take_name(place):  # "@NAME" is abstract; a path is made as a socket that listens
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET if place.startswith("@") else socket.SOCK_STREAM)
    made.bind(place.replace("@", "\0", 1) if place.startswith("@") else place)
    made.listen()
    held.append(made)

def make_deep(path):  # deeper than Python can remove, and with a lock file that nobody holds
    os.mkdir(path)
    open(path + "/.owner", "w").close()
    os.chdir(path)
    for _ in range(1200):
        os.mkdir("d")
        os.chdir("d")
    os.chdir("/")

def make_folder(path):
    os.makedirs(path, 0o777)

def make_file(path):
    with open(path, "w") as made:
        made.write(job.get("text", "{}"))

def pass_for(record):  # a process with the token that a lab's record shows, which heeds no signal
    with open(record) as file:
        token = json.load(file).get("token")
    if not token:
        return False
    children.append(os.fork())
    if children[-1] == 0:
        heedless = "import signal; signal.signal(15, signal.SIG_IGN); signal.pause()"
        os.execve(sys.executable, [sys.executable, "-c", heedless], {"MRCLAB_LAB": token})

done = {name: [each for each in given if tried(globals()[name], each)] for name, given in job["tries"].items()}
print(json.dumps(done), flush=True)
sys.stdin.read()
for child in children:
    tried(os.kill, child, signal.SIGKILL)
"""


def runs(user: int) -> bool:
    """Whether there is a Python that another user may run."""
    if os.geteuid() != 0 or not PYTHON.exists():
        return False
    return subprocess.run([PYTHON, "-Ic", "pass"], user=user, group=user, extra_groups=[], check=False).returncode == 0


@contextmanager
def trying(user: int, tries: Mapping[str, Sequence[Any]], **more: str) -> Iterator[dict[str, list[Any]]]:
    """A process of this user that tries all this, and keeps what it got meanwhile. Gives what it achieved.

    `tries` has lists of paths, sockets (`@` for abstract ones) or processes by the name of a function above.
    """
    words = [str(PYTHON), "-Ic", PROGRAM]
    with subprocess.Popen(
        words, user=user, group=user, extra_groups=[], cwd="/", text=True, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"tries": tries, **more}) + "\n")
        process.stdin.flush()
        yield json.loads(process.stdout.readline())
        process.stdin.close()
        process.wait(LIMIT_S)


def achieved(user: int, tries: Mapping[str, Sequence[Any]], **more: str) -> dict[str, list[Any]]:
    """The result of a function in a process of this user, which ends afterwards."""
    with trying(user, tries, **more) as done:
        return done
