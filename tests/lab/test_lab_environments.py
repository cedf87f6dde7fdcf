"""Where ./lab installs, and what it takes from the environment of its caller."""

import shutil
import subprocess

import pytest

from tests.helpers.bare_machine import PYTHON, ROOT, Machine


@pytest.mark.parametrize("words", [("list",), ("controller", "shell", "p0l0"), ("install",), ("test",)])
def test_a_folder_of_other_files_is_not_installed_into(machine: Machine, words: tuple[str, ...]) -> None:
    place = machine.folder / ("venv-shell" if words[0] == "controller" else "venv")
    (place / "thesis").mkdir(parents=True)
    (place / "thesis/chapter").write_text("of three years")
    done = machine.run(*words)
    assert done.returncode == 2
    assert f"{place} must be an environment of Python with pip, or empty" in done.stderr
    assert (place / "thesis/chapter").read_text() == "of three years"
    assert [path.name for path in place.iterdir()] == ["thesis"]


def test_an_environment_that_the_user_has_made_is_installed_into_and_keeps_its_packages(machine: Machine) -> None:
    machine.fake("python", PYTHON, "venv/bin")
    machine.fake("mine", "", "venv/bin")
    assert machine.run("list").returncode == 0
    assert not any("-m venv" in line for line in machine.log)
    assert (machine.folder / "venv/bin/mine").exists()


def test_an_environment_of_the_user_whose_installation_was_broken_off_loses_nothing(machine: Machine) -> None:
    machine.fake("python", PYTHON.replace('case "$*" in', 'case "$*" in\n*locks/user.txt) exit 130 ;;'), "venv/bin")
    (machine.folder / "venv/thesis").write_text("of three years")
    assert machine.run("list").returncode == 130
    done = machine.run("list")
    assert (done.returncode, "venv must be whole" in done.stderr) == (2, True)
    assert (machine.folder / "venv/thesis").read_text() == "of three years"


def test_an_environment_whose_python_was_replaced_is_made_again(machine: Machine) -> None:
    """The system's Python 3.13 in place of 3.11 finds no pip there."""
    assert machine.run("list").returncode == 0
    (machine.folder / "venv/bin/python").unlink()
    machine.fake("python3", PYTHON.replace("3.11.2", "3.13.5"))
    assert machine.run("list").returncode == 0
    assert any("-m venv" in line for line in machine.log)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ("4711 drwxr-xr-x", "venv must be root's or this user's (user 4711 owns it)"),
        ("0 drwxrwxrwx", "venv must not be writable for all"),
        ("0 drwxrwxrwt", "venv must not be writable for all"),
        ("0 drwxrwxr-x", ""),
        ("1000 drwx------", ""),
    ],
)
def test_no_python_of_an_environment_of_others_is_started(machine: Machine, seen: str, said: str) -> None:
    """Root would run what they put there, already when it is asked whether it has pip."""
    machine.fake("id", "#!/bin/sh\necho 1000\n")
    own = f"*venv*%A*|*%A*venv*) echo '{seen}' ;;\n*venv*) echo {seen.split()[0]} ;;"
    machine.fake("stat", f'#!/bin/sh\ncase "$*" in\n{own}\n*) echo "0 drwxr-xr-x" ;;\nesac\n')
    machine.fake("python", '#!/bin/sh\necho "ran $*" >>"$LOG"\n', "venv/bin")
    done = machine.run("list")
    assert (said in done.stderr, any(line.startswith("ran") for line in machine.log)) == (True, not said)
    assert done.returncode == 2 or not said


@pytest.mark.parametrize(
    ("where", "sticky"), [("open/venv", 0), ("open/own/venv", 0), ("link", 0), ("open/venv", 0o1000)]
)
def test_no_environment_is_used_whose_place_others_can_take(machine: Machine, where: str, sticky: int) -> None:
    """They would rename the folder after the look at its owner, and root would run the Python of another one."""
    place = machine.folder / "open"
    place.mkdir()
    place.chmod(0o777 | sticky)
    machine.fake("stat", f'#!/bin/sh\nexec {shutil.which("stat")} "$@"\n')
    machine.fake("python", '#!/bin/sh\necho "ran $*" >>"$LOG"\n', f"{where if where != 'link' else 'open/venv'}/bin")
    (machine.folder / "link").symlink_to("open/venv")
    done = machine.run("list", environment={"MRCLAB_VENV": str(machine.folder / where)})
    ran = any(line.startswith("ran") for line in machine.log)
    assert ("must lie in folders that not all may write to" in done.stderr, ran) == (not sticky, bool(sticky))
    assert sticky or done.returncode == 2


@pytest.mark.parametrize("words", [("list",), ("topo", "show", "tiny")])
def test_nothing_is_installed_by_way_of_temporary_files_that_others_can_exchange(machine: Machine, words) -> None:
    """Installers run what they unpack there."""
    (machine.folder / "shared").mkdir()
    (machine.folder / "shared").chmod(0o777)
    machine.fake("stat", f'#!/bin/sh\nexec {shutil.which("stat")} "$@"\n')
    done = machine.run(*words, environment={"TMPDIR": str(machine.folder / "shared")})
    assert (done.returncode, "name another by TMPDIR" in done.stderr or "chmod +t" in done.stderr) == (2, True)
    assert not any("install" in line for line in machine.log)


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_uv_takes_nothing_from_a_cache_that_others_may_change(machine: Machine, mode: int) -> None:
    """uv copies unpacked packages from its cache, and checks neither their owner nor their digest again."""
    (machine.folder / "cache").mkdir()
    (machine.folder / "cache").chmod(mode)
    machine.fake("stat", f'#!/bin/sh\nexec {shutil.which("stat")} "$@"\n')
    machine.fake("uv", '#!/bin/sh\necho "uv cache ${UV_NO_CACHE:-used}" >>"$LOG"\n', "venv/bin")
    machine.fake("python", PYTHON, "venv/bin")
    assert machine.run("list", environment={"XDG_CACHE_HOME": str(machine.folder / "cache")}).returncode == 0
    said = {line for line in machine.log if line.startswith("uv cache")}
    assert said == {"uv cache used" if mode == 0o755 else "uv cache true"}


def test_a_clone_whose_path_python_would_split_is_refused(machine: Machine) -> None:
    """At a colon, and import the rest of it from the current folder."""
    place = machine.folder / "a:b"
    place.mkdir()
    (place / "lab").write_bytes((ROOT / "lab").read_bytes())
    (place / "lab").chmod(0o755)
    done = subprocess.run([place / "lab", "list"], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "must have no colon" in done.stderr


@pytest.mark.parametrize(
    ("given", "taken"),
    [(":/opt", "/opt"), ("/a b:.::../x:/*:", "/a b:/*"), (":", ""), ("lib", ""), ("/opt", "/opt"), ("", "")],
)
def test_no_entry_of_pythonpath_means_the_current_folder(machine: Machine, given: str, taken: str) -> None:
    machine.fake("python3", PYTHON.replace("echo", 'echo "path ${PYTHONPATH-}" >>"$LOG"\necho', 1))
    assert machine.run("list", environment={"PYTHONPATH": given}).returncode == 0
    paths = {line.removeprefix("path ") for line in machine.log if line.startswith("path ")}
    assert {path for path in paths if not path.startswith(f"{ROOT}:")} == {
        taken
    }  # that: before there is an environment


@pytest.mark.parametrize(("user", "given", "left"), [(0, 0o000, 0o022), (0, 0o077, 0o077), (1000, 0o002, 0o002)])
def test_others_cannot_change_what_root_installs(machine: Machine, user: int, given: int, left: int) -> None:
    machine.fake("id", f"#!/bin/sh\necho {user}\n")
    machine.fake("sudo", '#!/bin/sh\nexec "$@"\n')
    assert machine.run("list", umask=given).returncode == 0
    assert (machine.folder / "venv/bin").stat().st_mode & 0o777 == 0o777 & ~left
