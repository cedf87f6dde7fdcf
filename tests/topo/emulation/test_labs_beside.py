"""Labs beside each other: killed, broken, and of other users."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from cli.commands import lab as commands
from common.interpreter import python
from topo.emulation import namespace, process, state
from topo.emulation.lab import Lab, down
from topo.emulation.labname import DEFAULT_LAB, LabName
from topo.emulation.state import LabError, LabRunningError, NoLabError
from topo.node import Switch
from topo.planfile import load_plan

pytestmark = pytest.mark.root

PROJECT = Path(__file__).parents[3]
TINY = load_plan("tiny")
KERNEL_TINY = load_plan("tiny", {"switch": "linux"})
BLUE, RED = LabName("blue"), LabName("red")
Control = Callable[[str, Lab, Sequence[Switch]], None]


@pytest.fixture(autouse=True)
def nothing_left(private_run: None) -> Iterator[None]:
    yield
    for name in (DEFAULT_LAB, BLUE, RED):
        down(name)
    assert os.listdir("/run/netns") == []
    assert list(Path("/run").glob("mrclab*")) == []


def words(*line: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
    """A command line of `./lab`; `user` is who called sudo."""
    env = {**os.environ, **({"SUDO_USER": user} if user else {})}
    argv = [sys.executable, "-m", "cli", *line]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, cwd=PROJECT, env=env)


def test_kill_9_of_all_in_one_and_its_down_leave_the_other_verified_clean(control, provision, require_kind) -> None:
    require_kind("embedded")
    first = Lab.up(TINY, provision=provision)
    second = Lab.up(TINY, name=BLUE, provision=provision)
    assert first.switch_control != second.switch_control
    for pid in process.find(second.record.token):
        os.kill(pid, signal.SIGKILL)
    assert len(Lab.attach(name=BLUE).status()["switches_silent"]) == TINY.switch_count
    assert down(BLUE) is True
    assert not any(namespace.exists(BLUE.netns(node)) for node in TINY.nodes())
    assert first.status()["switches_silent"] == []
    control("verify", first, list(TINY.switches()))


@pytest.mark.parametrize("form", ["text", "json"])
def test_status_fails_when_the_lab_has_lost_a_namespace(form: str) -> None:
    Lab.up(KERNEL_TINY)
    assert words("status", "--format", form).returncode == 0
    namespace.delete("h0")
    assert words("status", "--format", form).returncode == 1
    assert [row["state"] for row in commands.rows()] == ["broken"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_status_fails_when_the_switch_process_is_dead(form: str, require_kind: Callable[[str], None]) -> None:
    require_kind("embedded")
    lab = Lab.up(TINY)
    assert words("status", "--format", form).returncode == 0
    for pid in process.find(lab.record.token):
        os.kill(pid, signal.SIGKILL)
    done = words("status", "--format", form)
    assert (done.returncode, "p0l0" in done.stdout) == (1, True)
    assert [row["state"] for row in commands.rows()] == ["broken"]


def bringing_blue_up() -> subprocess.Popen[bytes]:
    """A process of a run that brings up a lab, and then waits."""
    script = (
        "from topo.planfile import load_plan; from topo.emulation.lab import Lab; from topo.emulation.labname import"
        " LabName; Lab.up(load_plan('tiny', {'switch': 'linux'}), name=LabName('blue'), run='smoke');"
        " print('up', flush=True); input()"
    )
    argv = [sys.executable, "-c", script]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROJECT)


def test_a_killed_up_of_one_name_is_cleaned_up_by_down_of_that_name_alone() -> None:
    first = Lab.up(KERNEL_TINY)
    with bringing_blue_up() as starter:
        while not namespace.exists("blue.h0"):
            assert starter.poll() is None
        starter.kill()
    assert words("status", "--name", "blue").returncode == 1
    assert "the process that brought it up has died" in words("status", "--name", "blue").stdout
    assert "abandoned" in words("status").stdout
    assert down(BLUE) is True
    assert sorted(os.listdir("/run/netns")) == sorted(node.name for node in KERNEL_TINY.nodes())
    assert first.status()["namespaces_missing"] == []


def test_a_lab_whose_run_was_killed_is_abandoned_status_says_so_and_up_replaces_it() -> None:
    with bringing_blue_up() as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"up\n"
        assert "a run is in progress: smoke" in words("status", "--name", "blue").stdout
        assert [row["state"] for row in commands.rows()] == ["running"]
        run.kill()
    assert "its run has died: smoke; `down --name blue` removes the rest" in words("status", "--name", "blue").stdout
    assert [row["state"] for row in commands.rows()] == ["abandoned"]
    Lab.up(KERNEL_TINY, name=BLUE, run="link-flap")
    assert [(row["state"], row["run"]) for row in commands.rows()] == [("running", "link-flap")]


def test_a_second_up_of_a_name_is_refused_and_another_is_up_while_one_is_being_changed() -> None:
    Lab.up(KERNEL_TINY, name=BLUE)
    with pytest.raises(LabRunningError, match=r"a lab of the name blue is there already: .*`down --name blue` ends it"):
        Lab.up(KERNEL_TINY, name=BLUE)
    with pytest.raises(NoLabError, match=r"no lab is running: ./lab up starts one; running are: blue \(--name\)"):
        Lab.attach()
    with pytest.raises(NoLabError, match=r"no lab of the name red is running: ./lab up --name red starts one"):
        Lab.attach(name=RED)
    with state.locked(BLUE.root):
        with pytest.raises(LabError, match="being changed"):
            down(BLUE)
        Lab.up(KERNEL_TINY, name=RED).down()


def test_status_names_every_lab_with_plan_owner_and_run_and_inspects_the_chosen_one() -> None:
    Lab.up(KERNEL_TINY, name=BLUE, run="link-flap").inject("link-down", "p0l0-p0s0")
    assert words("up", "tiny", "--switch", "linux", "--name", "red", user="ann").returncode == 0
    alone = words("status", "--name", "red")
    assert alone.stdout.startswith("plan 'tiny' is running, for user ann, brought up 0.")
    told = json.loads(words("status", "--name", "blue", "--format", "json").stdout)
    assert (told["name"], told["run"], told["faults"]) == ("blue", "link-flap", ["link-down p0l0-p0s0"])
    rows = {row["name"]: row for row in told["labs"]}
    assert (rows["blue"]["run"], rows["blue"]["faults"]) == ("link-flap", 1)
    assert (rows["red"]["plan"], rows["red"]["owner"], rows["red"]["state"]) == ("tiny", "ann", "running")
    table = words("status").stdout
    assert table.startswith("no lab is running\n")
    assert [line.split()[0] for line in table.splitlines()[-2:]] == ["blue", "red"]


def test_a_name_of_sudo_reaches_no_terminal_raw() -> None:
    assert words("up", "tiny", "--switch", "linux", "--name", "red", user="a\x1b[31m").returncode == 0
    for line in (words("status", "--name", "red").stdout + words("status").stdout).splitlines():
        assert line.isprintable(), ascii(line)


def test_an_ordinary_user_sees_all_labs_and_no_error() -> None:
    Lab.up(KERNEL_TINY, name=BLUE)
    imports = "import locale, os, sys, cli.commands.lab; from cli.main import main"  # before Python cannot be read
    script = f"{imports}; os.setuid(65534); sys.exit(main(sys.argv[1:]))"
    for line in (["status", "--name", "blue"], ["status", "--name", "blue", "--format", "json"]):
        argv = [sys.executable, "-c", script, *line]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, cwd=PROJECT)
        assert (done.returncode, done.stderr) == (0, "")
        assert "blue" in done.stdout or "plan 'tiny' is running" in done.stdout


def test_down_all_ends_a_users_own_labs_and_says_whose_the_others_are() -> None:
    for name, user in (("blue", "ann"), ("red", "bob")):
        assert words("up", "tiny", "--switch", "linux", "--name", name, user=user).returncode == 0
    done = words("down", "--all", user="ann")
    assert done.stdout == "down: blue\nlab 'red' stays: it is bob's: down --name red ends it\n"
    assert [row["name"] for row in commands.rows()] == ["red"]
    assert words("down", "--all").stdout == "down: red\n"  # root itself, without sudo
    assert words("down", "--all").stdout == "no lab of yours was running\n"


def test_a_record_that_cannot_be_read_does_not_hide_the_other_labs() -> None:
    Lab.up(KERNEL_TINY, name=BLUE)
    good = (BLUE.root / "lab.json").read_text()
    try:
        (BLUE.root / "lab.json").write_text("{}")
        Lab.up(KERNEL_TINY, name=RED)
        assert {row["name"]: row["state"] for row in commands.rows()} == {"blue": "unreadable", "red": "running"}
        assert "blue" in words("status", "--name", "red").stdout
    finally:
        (BLUE.root / "lab.json").write_text(good)


def test_the_prompt_of_a_named_lab_works_in_its_namespaces(tmp_path: Path) -> None:
    Lab.up(KERNEL_TINY)
    Lab.up(KERNEL_TINY, name=BLUE)
    script = tmp_path / "commands"
    script.write_text("h0 ping -c1 -W1 h3\nlink-down p0l0 p0s0\nh0 ip netns identify\nfaults\n")
    done = words("shell", str(script), "--name", "blue")
    assert done.returncode == 0, done.stderr
    assert "1 received" in done.stdout + done.stderr
    assert "1  link-down p0l0-p0s0" in done.stdout + done.stderr
    assert "blue.h0" in done.stdout + done.stderr
    assert Lab.attach().faults() == []


LISTENS = "0A"
NOBODY = 65534


@pytest.fixture
def lab() -> Iterator[Lab]:
    made = Lab.up(load_plan("tiny"))
    yield made
    down(made.name)


def listening() -> set[str]:
    """Local addresses of TCP sockets that listen in this network namespace."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {row[1] for row in rows if row[3] == LISTENS}


def test_no_process_of_a_lab_listens_on_tcp_in_the_root_namespace() -> None:
    before = listening()
    made = Lab.up(load_plan("tiny"))
    try:
        assert listening() == before
    finally:
        down(made.name)


def told_as(user: int, act: Callable[[], object]) -> str:
    """What a call returns or raises in a process of another user; its modules are loaded already."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            said = repr(act())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


def test_another_user_is_told_whose_lab_it_is_and_not_that_switches_are_silent(lab: Lab) -> None:
    def status() -> object:
        found = Lab.attach().status()
        return [found[key] for key in ("closed", "switches_silent", "processes", "namespaces_missing")]

    why = "the lab belongs to root, and its switches answer root only: call this command with sudo"
    status()
    said = told_as(NOBODY, status)
    assert why in said
    assert said.endswith(", [], None, []]")
    for act in (lambda: Lab.attach().switch_control, lambda: Lab.attach().p4runtime(next(iter(lab.plan.switches())))):
        assert f"LabError: {why}" in told_as(NOBODY, act)


def test_another_user_can_change_nothing_of_a_lab_that_root_made_with_an_open_umask() -> None:
    """`profiles` had the umask's mode, and agents of root obey what lies there."""
    words = python("-m", "cli", "up", "tiny", "--name", "open")
    subprocess.run(words, umask=0, check=True, capture_output=True)
    try:
        made = [LabName("open").root, *LabName("open").root.rglob("*")]
        assert {"profiles", "h0.json", "agents"} <= {path.name for path in made}
        assert [path for path in made if not path.is_symlink() and path.stat().st_mode & 0o022] == []
    finally:
        down(LabName("open"))
