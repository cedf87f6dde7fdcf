"""./lab on a machine that lacks things: what it installs for which words, and what it hands over."""

import fcntl
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cli.command_table import commands
from tests.helpers.bare_machine import APT, IN_BARE, IN_PLACE, PACKAGES, PYTHON, ROOT, Machine
from tests.helpers.waiting import eventually, ran


@pytest.mark.parametrize(
    "words",
    [
        ("list",), ("topo", "show", "lab"), ("report",), ("compare", "a", "b"), ("trace", "h0", "h5"), ("doctor",),
        ("status",), ("down",), ("exec", "h0", "ls", "--help"), ("exec", "h0", "--", "ls", "--version"),
    ],
)  # fmt: skip
def test_words_that_build_nothing_install_python_and_nothing_else(machine: Machine, words: tuple[str, ...]) -> None:
    assert machine.installed(*words) == {"python3-venv"}
    assert machine.log[-1] == f"python -P -m cli {' '.join(words)}"


FIRST = (
    "", "--help", "help", "--version", "course --help", "start --help", "incident --help", "labs", "deploy", "run",
    "run --seed x", "-h", "run link-flap --help",
)  # fmt: skip
"""The first words that ten people typed, two that they mistyped, and two that mean help as well."""


@pytest.mark.parametrize("line", FIRST)
def test_first_words_are_answered_at_once_and_install_nothing(machine: Machine, line: str) -> None:
    done = machine.run(*line.split())
    assert not any("apt-get" in entry or "pip" in entry or "-m venv" in entry for entry in machine.log)
    assert done.returncode in (0, 2)
    assert "Traceback" not in done.stderr
    if not line or line.startswith("-") or line.endswith("--help"):
        assert machine.log[-1] == f"python -SP -m cli {line}".rstrip()
    assert not (machine.folder / "venv").exists()


ANSWERED = """
import contextlib, io, json, sys
from cli.main import main
for line in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        try:
            status = main(line.split())
        except SystemExit as ended:
            status = ended.code
    if status not in (None, 0, 2) or not said.getvalue():
        sys.exit(f"{line}: {status}, {said.getvalue()}")
"""


def test_first_words_are_answered_with_the_standard_library_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-SP", "-c", ANSWERED, json.dumps(FIRST)], env={"PYTHONPATH": IN_BARE}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_help_that_the_systems_python_cannot_give_is_given_after_installing(machine: Machine) -> None:
    machine.fake("python3", PYTHON.replace('case "$*" in', 'case "$*" in\n*"-SP -m cli"*) exit 1 ;;'))
    assert machine.installed("--help") == {"python3-venv"}
    assert machine.log[-1] == "python -P -m cli --help"


@pytest.mark.parametrize("words", [("list",), ("install",), ("test",)])
def test_the_environment_of_another_clone_is_not_installed_into(clone: Machine, words: tuple[str, ...]) -> None:
    other = clone.folder / "other"
    other.mkdir()
    (clone.checkout / ".venv").symlink_to(other)
    done = clone.run(*words, environment={"MRCLAB_VENV": ""})
    assert done.returncode == 2
    assert f"it is a link to {other}" in done.stderr
    assert not any("apt-get" in line or "pip" in line or "-m venv" in line for line in clone.log)
    assert list(other.iterdir()) == []


def test_an_environment_that_is_named_or_linked_within_the_clone_is_installed_into(clone: Machine) -> None:
    (clone.folder / "other").mkdir()
    (clone.checkout / ".venv").symlink_to(clone.folder / "other")
    assert clone.run("list", environment={"MRCLAB_VENV": str(clone.checkout / ".venv")}).returncode == 0
    (clone.checkout / ".venv").unlink()
    (clone.checkout / "within").mkdir()
    (clone.checkout / ".venv").symlink_to("within")
    assert clone.run("list", environment={"MRCLAB_VENV": ""}).returncode == 0


@pytest.mark.parametrize(
    "words", [("run", "smoke", "--world", "simulated"), ("run", "smoke", "--world=simulated", "--seed", "1")]
)
def test_a_run_in_virtual_time_needs_a_compiler_and_no_network(machine: Machine, words: tuple[str, ...]) -> None:
    assert machine.installed(*words) - {"libc6-dev"} == {"python3-venv", "gcc", "python3-dev"}


@pytest.mark.parametrize("words", [("run", "link-flap"), ("up", "tiny"), ("shell",)])
def test_what_builds_a_network_installs_what_that_takes(machine: Machine, words: tuple[str, ...]) -> None:
    wanted = {"python3-venv", "gcc", "mininet", "iputils-ping"}
    if words[0] == "run":
        wanted.add("python3-dev")  # the endpoint is compiled first
    # iproute2 may be found in /usr/sbin, which every search includes.
    assert machine.installed(*words) - {"libc6-dev", "iproute2"} == wanted


@pytest.mark.parametrize("user", ["0", "1000"])
def test_only_root_installs_debians_packages_beside_pythons(machine: Machine, user: str) -> None:
    """Another user is asked for a password, which takes the terminal."""
    machine.fake("id", f"#!/bin/sh\necho {user}\n")
    machine.fake("sudo", '#!/bin/sh\nexec "$@"\n')
    wait = """\n*locks/uv.txt) while ! { read -r _; } <"$FAKES/mininet"; do sleep 0.01 || exit; done ;;"""
    wait = wait if user == "0" else ""
    machine.fake("python3", PYTHON.replace('case "$*" in', 'case "$*" in' + wait))
    machine.fake("apt-get", APT + 'case "$*" in *mininet*) echo here >"$FAKES/mininet" ;; esac\n')
    done = machine.run("up", "tiny")
    assert done.returncode == 0, done.stderr
    debian, *_ = [at for at, line in enumerate(machine.log) if "apt-get install" in line and "mininet" in line]
    (itself,) = [at for at, line in enumerate(machine.log) if "--editable" in line]
    assert (debian < itself) == (user == "0")


@pytest.mark.parametrize("words", [("run", "link-flap"), ("run", "link-flap", "--world", "simulated"), ("up", "tiny")])
def test_the_endpoint_is_compiled_beside_the_installation_for_a_run_on_real_links(machine: Machine, words) -> None:
    """The rest of Python's packages wait for the build to begin here, and the command for its end."""
    compiles = words == ("run", "link-flap")
    machine.fake("cc", "#!/bin/sh\n")
    for package in ("python3-dev", "python3-venv"):
        (machine.folder / "bin" / package).touch()
    wait = f"""
*cli.first_build*) echo compiled >>"$LOG"; : >"$FAKES/begun"; sleep 0.1; : >"$FAKES/done" ;;
*locks/user.txt) [ {compiles:d} = 0 ] || while [ ! -e "$FAKES/begun" ]; do sleep 0.01 || exit; done ;;
*"-m cli run"*) [ {compiles:d} = 0 ] || [ -e "$FAKES/done" ] || exit 9 ;;"""
    machine.fake("python3", PYTHON.replace('case "$*" in', 'case "$*" in' + wait))
    done = machine.run(*words)
    assert done.returncode == 0, done.stderr
    assert ("compiled" in machine.log) == compiles


def test_packages_of_debian_that_cannot_be_installed_end_the_command(machine: Machine) -> None:
    machine.fake("apt-get", APT + 'case "$*" in *mininet*) exit 100 ;; esac\n')
    assert machine.run("up", "tiny").returncode == 100
    assert not any("-m cli up" in line for line in machine.log)


def test_headers_alone_are_no_reason_to_ask_for_a_password(machine: Machine) -> None:
    machine.run("list")
    for command in ("cc", "gcc"):
        machine.fake(command, "#!/bin/sh\n")
    machine.fake("id", "#!/bin/sh\necho 1000\n")
    machine.fake("sudo", '#!/bin/sh\necho "sudo $*" >>"$LOG"\nexec "$@"\n')
    libc = Path("/usr/include/stdlib.h").exists()
    assert libc == (machine.installed("run", "smoke", "--world", "simulated") == set())
    machine.fake("id", "#!/bin/sh\necho 0\n")
    assert "python3-dev" in machine.installed("run", "smoke", "--world", "simulated")


def test_install_brings_what_any_command_needs_and_compiles_the_endpoint(machine: Machine) -> None:
    wanted = {"python3-venv", "gcc", "python3-dev", "mininet", "iputils-ping", "tcpdump"}
    assert machine.installed("install") - {"libc6-dev", "iproute2"} == wanted
    assert [line for line in machine.log if "-m cli" in line] == ["python -P -m cli compile"]


def test_a_release_is_where_it_was_asked_for_also_where_the_first_call_installs(machine: Machine) -> None:
    machine.fake("git", '#!/bin/sh\n[ "$1" = status ] || echo 1790000000\n')
    assert machine.run("release").returncode == 0
    assert machine.log[-1] == f"python -I -m hatchling build -d {machine.folder}/dist"


def test_the_tests_bring_what_their_pages_and_programs_use(machine: Machine) -> None:
    """Looks at the packages only. The call fails after it has asked for them, since there is no checkout to test."""
    machine.run("test")
    asked = " ".join(line for line in machine.log if line.startswith("apt-get install"))
    assert all(package in asked for package in ("mininet", "gcc", "tshark", "perftest"))


def test_a_capture_needs_tcpdump(machine: Machine) -> None:
    assert machine.installed("capture", "h0-p0l0") - {"tcpdump"} == {"python3-venv"}
    assert "tcpdump" in machine.installed("capture", "h0-p0l0") or Path("/usr/sbin/tcpdump").exists()


def test_without_root_and_sudo_it_says_what_needs_root(machine: Machine) -> None:
    machine.fake("id", "#!/bin/sh\necho 1000\n")
    done = machine.run("run", "link-flap")
    assert done.returncode == 2
    assert "needs root: run ./lab as root, or install sudo" in done.stderr
    assert "apt-get install --no-install-recommends " in done.stderr
    assert not any("apt-get" in line for line in machine.log)


def test_with_sudo_only_the_installing_is_done_as_root(machine: Machine) -> None:
    machine.fake("id", "#!/bin/sh\necho 1000\n")
    machine.fake("sudo", '#!/bin/sh\necho "sudo $*" >>"$LOG"\nexec "$@"\n')
    assert machine.run("list").returncode == 0
    asked = [line for line in machine.log if line.startswith("sudo")]
    assert asked
    assert all("apt-get" in line for line in asked)


def test_a_system_without_apt_is_told_what_is_missing(machine: Machine) -> None:
    (machine.folder / "bin" / "apt-get").unlink()
    done = machine.run("list")
    assert done.returncode == 2
    assert "missing: python3-venv; this is not a Debian-like system" in done.stderr


def pip_lines(machine: Machine) -> list[str]:
    return [line for line in machine.log if "-m pip --quiet" in line]


def test_every_package_comes_from_a_lock_with_its_digest(machine: Machine) -> None:
    machine.run("list")
    uv, build, user, itself = pip_lines(machine)
    for first, lock in ((uv, "uv"), (build, "build")):
        assert "--require-hashes --only-binary :all:" in first
        assert first.endswith(f"locks/{lock}.txt")
    assert "--require-hashes --no-build-isolation" in user
    assert user.endswith("locks/user.txt")
    assert itself.endswith(f"--no-deps --no-build-isolation {IN_PLACE}")


def with_uv(machine: Machine, text: str) -> Machine:
    """The machine with an index that has uv, which does what `text` says after logging its call."""
    machine.fake("made-uv", f'#!/bin/sh\necho "uv $UV_DEFAULT_INDEX $*" >>"$LOG"\n{text}\n')
    made = '\n*locks/uv.txt) cp "$FAKES/made-uv" "${0%/*}/uv" ;;\n*"config get"*) echo https://index.example/simple ;;'
    machine.fake("python3", PYTHON.replace('case "$*" in', 'case "$*" in' + made))
    return machine


def test_uv_installs_from_the_locks_and_from_pips_index(machine: Machine) -> None:
    done = with_uv(machine, "").run("list")
    assert done.returncode == 0, done.stderr
    assert [line.rpartition("/")[2] for line in pip_lines(machine) if "install" in line] == ["uv.txt"]
    build, user, itself = [line for line in machine.log if line.startswith("uv ")]
    python = f"--python {machine.folder}/venv/bin/python"
    said = "uv https://index.example/simple --quiet pip install"
    assert build == f"{said} --require-hashes --only-binary :all: --requirement {ROOT}/locks/build.txt {python}"
    assert user == f"{said} --require-hashes --no-build-isolation --requirement {ROOT}/locks/user.txt {python}"
    assert itself == f"{said} --no-deps --no-build-isolation {IN_PLACE} {python}"


def test_where_uv_fails_pip_installs(machine: Machine) -> None:
    done = with_uv(machine, "exit 2").run("list")
    assert done.returncode == 0
    assert "lab: uv could not install that: pip does, which takes longer" in done.stderr
    installed = [line.split()[-1].rpartition("/")[2] for line in pip_lines(machine) if " install " in line]
    assert installed == ["uv.txt", "build.txt", "user.txt", PACKAGES[-1].name]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *((words, "") for words in ("compile --bogus", "up tiny --bogus", "capture", "run smoke --rate fast", "upp")),
        ("sweep smoke --cluster nonsense://x", ""),
        ("run link-flpa", "did you mean"),
        ("sweep smokee", "did you mean"),
        ("run smoke --transport mrc,roe", "did you mean"),
        ("run smoke --sede 3", "did you mean"),
        ("contest --algorithms mrc,,reps", "number 2 of 'mrc,,reps' is empty"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_installed(machine: Machine, words: str, said: str) -> None:
    done = machine.run(*words.split())
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.splitlines()[-1].startswith(("mrclab", "./lab"))
    assert not any("apt-get" in line or "pip" in line or "-m venv" in line for line in machine.log)


NONE_SUCH = [
    ("contest --algorithms mrc,repz", "no selection 'repz'"),
    ("contest --scenario smoke,incst", "did you mean incast"),
    ("sweep smoke --plan tiny,tinyy", "no plan 'tinyy'"),
    ("up tinyy", "no plan 'tinyy'"),
    ("trace h0 h1 --plan tinyy", "no plan 'tinyy'"),
    ("reproduce 9z", "FIGURE must be one of"),
    ("incident --level 9", "between 1 and 5"),
    ("rehearse gone.toml", "gone.toml"),
    *((f"{words} 11", "no lab '11'") for words in ("start", "check", "hint", "course page")),
    ("start 1 --student=", "must have 1 to 80 printable characters"),
    ("course join anna", "NAME@KEY"),
]
REFUSED = """
import contextlib, io, json, sys
from cli.main import main
for line, told in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        status = main(["--needs", *line.split()])
    if status != 2 or told not in said.getvalue():
        sys.exit(f"{line}: {status}, {said.getvalue()}")
"""


def test_names_that_do_not_exist_are_refused_with_the_standard_library_alone() -> None:
    done = ran([sys.executable, "-SP", "-c", REFUSED, json.dumps(NONE_SUCH)], timeout=120, env={"PYTHONPATH": IN_BARE})
    assert done.returncode == 0, done.stderr


def test_options_are_parsed_with_the_standard_library_alone() -> None:
    """Nothing is installed yet when options are checked."""
    code = f"from cli.main import parser\nfor word in {list(commands())}: parser(word)"
    environment = {"PATH": "/usr/bin", "PYTHONPATH": IN_BARE, "PYTHONDONTWRITEBYTECODE": "1"}
    done = ran([sys.executable, "-SP", "-c", code], timeout=120, env=environment)
    assert done.returncode == 0, done.stderr


def test_an_environment_without_pip_is_made_again(machine: Machine) -> None:
    """A first call that was killed while it made the environment leaves a Python, but no pip."""
    machine.fake("python3", PYTHON.replace('*"-m venv"*)', '*"-m venv"*) [ ! -e "$FAKES/kill" ] || kill $$;'))
    (machine.folder / "bin/kill").touch()
    assert machine.run("list").returncode != 0
    (machine.folder / "bin/kill").unlink()
    no_pip = PYTHON.replace('case "$*" in', 'case "$*" in\n*"-m pip --version"*) exit 1 ;;')
    machine.fake("python", no_pip, "venv/bin")
    assert machine.run("list").returncode == 0
    assert any("-m venv" in line for line in machine.log)
    assert any("-m pip --quiet" in line for line in machine.log)


def test_two_first_calls_install_once(machine: Machine) -> None:
    slow = PYTHON.replace(
        'case "$*" in', 'case "$*" in\n*"-m pip --quiet"*) while [ ! -e "$FAKES/go" ]; do sleep 0.1 || exit; done ;;', 1
    )
    machine.fake("python3", slow)
    (machine.folder / "log").write_text("")
    with ThreadPoolExecutor(2) as calls:
        both = [calls.submit(machine.run, "list", fresh=False) for _ in range(2)]
        deadline_s = time.monotonic() + 30
        while not any("-m pip --quiet" in line for line in machine.log) and time.monotonic() < deadline_s:
            pass
        (machine.folder / "bin/go").touch()
        done = [call.result() for call in both]
    assert [one.returncode for one in done] == [0, 0], [one.stderr for one in done]
    assert sum("-m pip --quiet" in line for line in machine.log) == 4  # the four steps of one installation


def revision(clone: Machine, name: str) -> None:
    """Make the checkout another revision, with other locks."""
    (clone.checkout / "locks/user.txt").write_text(f"# {name}\n")


def test_the_environment_of_another_revision_is_installed_anew(clone: Machine) -> None:
    for name in ("A", "B", "A"):
        revision(clone, name)
        assert clone.run("list").returncode == 0
        assert len(pip_lines(clone)) == 4, f"on the way to {name}"
        clone.run("list")
        assert pip_lines(clone) == []


def test_an_environment_that_another_revision_left_half_made_is_not_used(clone: Machine) -> None:
    revision(clone, "A")
    assert clone.run("list").returncode == 0
    revision(clone, "B")
    clone.fake("python", PYTHON.replace('case "$*" in', 'case "$*" in\n*locks/user.txt) exit 130 ;;'), "venv/bin")
    assert clone.run("list").returncode == 130
    assert (clone.folder / "venv/.installing").exists(), "as where it was killed"
    revision(clone, "A")
    assert clone.run("list").returncode == 0
    assert not (clone.folder / "venv/.installing").exists()
    assert any("-m venv" in line for line in clone.log)
    assert len(pip_lines(clone)) == 4


@pytest.mark.parametrize(
    "words",
    [
        ("controller", "shell", "p0l0"),
        ("--name", "x", "controller", "shell", "p0l0"),
        ("controller", "--name", "x", "shell", "p0l0"),
        ("controller", "shell", "p0l0", "--name", "x"),
    ],
)
def test_p4runtime_shell_has_an_environment_to_itself_wherever_the_labs_name_is_said(machine: Machine, words) -> None:
    machine.run("list")
    assert not any("shell.txt" in line for line in machine.log)
    assert machine.run(*words).returncode == 0
    assert any(line.endswith("-m venv " + str(machine.folder / "venv-shell")) for line in machine.log)
    assert pip_lines(machine)[-1].endswith("locks/shell.txt")
    assert machine.run(*words).returncode == 0
    assert pip_lines(machine) == []


def test_the_shell_is_installed_where_nothing_else_is_missing(machine: Machine) -> None:
    for command in ("cc", "gcc", "mnexec", "ip", "ping", "tcpdump"):
        machine.fake(command, "#!/bin/sh\n")
    assert machine.run("list").returncode == 0
    assert machine.run("controller", "shell", "p0l0").returncode == 0
    assert pip_lines(machine)[-1].endswith("locks/shell.txt")


def test_what_serves_agents_is_installed_once_and_by_its_command_only(machine: Machine) -> None:
    machine.run("list")
    assert machine.run("mcp", "--help").returncode == 0
    assert pip_lines(machine) == []
    assert machine.run("mcp").returncode == 0
    (line,) = pip_lines(machine)
    assert line.endswith("locks/mcp.txt")
    assert "--require-hashes" in line
    assert machine.run("mcp").returncode == 0
    assert pip_lines(machine) == []


@pytest.mark.root
@pytest.mark.parametrize("broken", [False, True], ids=["whole", "broken off"])
def test_what_sudo_installed_is_the_users(machine: Machine, broken: bool) -> None:
    if broken:
        machine.fake("python3", PYTHON.replace('case "$*" in', 'case "$*" in\n*locks/shell.txt) exit 130 ;;'))
    done = machine.run("controller", "shell", "p0l0", environment={"SUDO_UID": "12345", "SUDO_GID": "23456"})
    assert done.returncode == (130 if broken else 0)
    made = [path for top in machine.folder.glob("venv*") for path in (top, *top.rglob("*"))]
    assert {path.name for path in made} >= {"venv", "venv.lock", "venv-shell", "python"}
    assert {(path.lstat().st_uid, path.lstat().st_gid) for path in made} == {(12345, 23456)}


@pytest.mark.root
def test_under_sudo_what_others_own_stays_theirs_and_what_root_has_elsewhere_roots(machine: Machine) -> None:
    venv, precious = machine.folder / "venv", machine.folder / "precious"
    machine.fake("python", PYTHON, "venv/bin")
    precious.touch()
    (venv / "theirs").touch()
    for path, user in ((venv, 12345), (venv / "theirs", 4321)):
        os.chown(path, user, user)
    os.link(precious, venv / "named")
    (venv / "link").symlink_to(precious)
    assert machine.run("list", environment={"SUDO_UID": "12345", "SUDO_GID": "23456"}).returncode == 0
    owners = [path.stat().st_uid for path in (venv / "theirs", venv / "bin/python", precious)]
    assert owners == [4321, 12345, 0]


@pytest.mark.root
def test_an_environment_of_another_user_is_said_to_be_that(clone: Machine) -> None:
    clone.fake("python3", PYTHON.replace('case "$*" in', 'case "$*" in\n*"--needs"*) ;;'))  # that user has no other one
    assert clone.run("list").returncode == 0
    revision(clone, "B")
    for folder in (clone.folder, *clone.folder.parents):
        folder.chmod(folder.stat().st_mode | 0o055)
    (clone.folder / "log").chmod(0o666)
    done = clone.run("list", user=12345, fresh=False)
    assert done.returncode == 2
    assert f"lab: {clone.folder}/venv must be writable" in done.stderr
    assert "here is Python 3.11.2" in done.stderr
    assert "Use a clone of your own, or an environment elsewhere: MRCLAB_VENV=$HOME/.mrclab-venv ./lab" in done.stderr
    assert "chown" not in done.stderr, "who owns the environment owns the Python that root runs"


def test_a_wait_for_another_installation_says_for_whom_it_is_and_ends(clone: Machine) -> None:
    script = clone.checkout / "lab"
    script.write_text(script.read_text().replace("lock_s=900", "lock_s=0.1"))
    lock = clone.folder / "venv.lock"
    lock.write_text("4711\n")
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = clone.run("list")
    assert done.returncode == 2
    assert f"lab: waiting for another call that installs into {clone.folder}/venv, at most 0.1 s: process 4711\n" in (
        done.stderr
    )
    assert f"lab: process 4711 still installs into {clone.folder}/venv: end it, or try again later\n" in done.stderr
    assert lock.stat().st_mode & 0o777 == 0o600  # an older version's was open to all


def test_a_lock_of_an_installation_that_is_a_link_or_a_fifo_is_refused_and_never_waited_for(clone: Machine) -> None:
    victim = clone.folder / "victim"
    victim.write_text("precious")
    (clone.folder / "venv.lock").symlink_to(victim)
    done = clone.run("list")
    assert (done.returncode, "venv.lock must be a regular file: rm" in done.stderr) == (2, True)
    assert victim.read_text() == "precious"
    (clone.folder / "venv.lock").unlink()
    os.mkfifo(clone.folder / "venv.lock")
    done = clone.run("list")
    assert (done.returncode, "venv.lock must be a regular file: rm" in done.stderr) == (2, True)


def test_the_checkout_is_found_through_a_link(clone: Machine) -> None:
    link = clone.folder / "links" / "mylab"
    link.parent.mkdir()
    link.symlink_to(clone.checkout / "lab")
    assert clone.run("list", environment={"MRCLAB_VENV": ""}, script=link).returncode == 0
    assert (clone.checkout / ".venv/bin/python").exists()
    assert pip_lines(clone)[-1].endswith(f"--editable {clone.checkout}")


def checked(machine: Machine, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`./lab test` with checks that say how they are called, and succeed."""
    machine.fake("python", (machine.folder / "bin/python3").read_text(), "venv/bin")
    for name in ("ruff", "lint-imports"):
        machine.fake(name, f'#!/bin/sh\necho "{name} $*" >>"$LOG"\n', "venv/bin")
    return machine.run("test", *words, environment=environment)


def test_a_relative_place_of_the_environment_is_below_the_callers_folder(machine: Machine) -> None:
    machine.fake("mypy", "#!/bin/sh\n", "venv/bin")
    assert checked(machine, "tests/common", MRCLAB_VENV="venv").returncode == 0
    assert "ruff check --quiet ." in machine.log
    assert machine.log[-1] == "python -m pytest -q tests/common"


@pytest.mark.parametrize("place", ["types", "shell"])
@pytest.mark.parametrize("signal", ["INT", "TERM"])
def test_a_test_that_is_interrupted_ends_the_compilation_beside_it(machine: Machine, signal: str, place: str) -> None:
    """While types are checked, and while p4runtime-shell is installed, which a subshell does."""
    interrupt = f"""while [ ! -e "$FAKES/compiling" ]; do sleep 0.01 || exit; done; kill -{signal} "$PPID" $$"""
    cases = """\n*"-m cli compile") trap 'echo ended >>"$LOG"; exit' TERM
    exec >"$FAKES/compiling" 2>&1; while [ ! -e "$FAKES/go" ]; do sleep 0.01 || exit; done ;;"""
    if place == "shell":
        cases += f"\n*locks/shell.txt) {interrupt} ;;"
    machine.fake("python3", PYTHON.replace('case "$*" in', 'case "$*" in' + cases))
    machine.fake("mypy", f"#!/bin/sh\n{interrupt}\n", "venv/bin")
    try:
        assert checked(machine).returncode in (130, 143)
        assert (place == "shell") == (not any("ruff" in line for line in machine.log))
        eventually(lambda: "ended" in machine.log, "the end of the compilation", 10)
    finally:
        (machine.folder / "bin/go").touch()
