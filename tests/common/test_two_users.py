"""Two users of one machine: what one of them tries does not stop, slow or show the other's work (docs/security.md).

The other user is a process with another user id, no groups and no rights. It tries, keeps what it got, and goes on
holding it while the first user works.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from common.locks import OWNER as LOCK
from running.identity import import_roots
from tests.helpers.descendants import descendants
from tests.helpers.other_user import PYTHON, achieved, runs, trying
from tests.helpers.waiting import ran
from topo.emulation import namespace, process, state
from topo.emulation.labname import LabName

ANNA, BEN = 61001, 61002
ROOT = Path(__file__).parents[2]
LAB = LabName("borders")
LIMIT_S = 600.0  # of patience with a busy machine
pytestmark = [pytest.mark.root, pytest.mark.skipif(not runs(BEN), reason=f"needs {PYTHON}, which other users can run")]


def below(folder: Path) -> list[str]:
    """A folder and all that is in it."""
    return [str(folder), *(str(path) for path in folder.rglob("*"))]


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder like /tmp, which every user reaches and may write; in one that is open to them (pytest's may be closed).

    It is removed by a program that copes with any depth.
    """
    top = Path(tempfile.mkdtemp(prefix="s-"))
    top.chmod(0o755)
    (top / "shared").mkdir()
    (top / "shared").chmod(0o1777)
    yield top / "shared"
    subprocess.run(["rm", "-rf", str(top)], check=True)


# --- root's lab, and an ordinary user -----------------------------------------------------------------------------

PUBLIC = {"", "lab.json", "faults.json", "switch.json", "switch-ready.json", "profiles", "traffic", "traffic/long.json"}
PUBLIC |= {f"profiles/h{number}.json" for number in range(4)}
PUBLIC |= {"agents", *(f"agents/h{number}.jsonl" for number in range(4))}  # for the page's server
"""Of the lab's folder, what docs/security.md says that every user may read."""


class RootsLab:
    """A lab of root with traffic; `words` are commands of root in the shared folder."""

    def __init__(self, shared: Path) -> None:
        self.shared = shared
        self.root = LAB.root

    def words(self, *words: str, status: int = 0) -> str:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.shared), "MRCLAB_NAME": LAB.text}
        done = ran([sys.executable, "-P", "-m", "cli", *words], timeout=LIMIT_S, cwd=self.shared, env=environment)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    @property
    def processes(self) -> list[int]:
        record = state.read_record(self.root)
        assert record is not None
        return process.find(record.token)

    def public(self, paths: list[str]) -> set[str]:
        return {str(Path(path).relative_to(self.root)) for path in paths} - {"."} | {""}


@pytest.fixture
def lab(shared: Path) -> Iterator[RootsLab]:
    made = RootsLab(shared)
    try:
        made.words("up", "tiny")
        made.words("traffic", "permutation", "h0", "h1", "h2", "h3", "--background", "--as", "long")
        yield made
    finally:
        made.words("down")


def sockets(names: list[str]) -> set[str]:
    """The Unix sockets with a name in network namespaces; `@` for abstract ones."""
    found = set()
    for name in names:
        with namespace.entered(name):
            rows = Path("/proc/thread-self/net/unix").read_text().splitlines()[1:]
        found |= {row.split()[7] for row in rows if len(row.split()) > 7}
    return found


@pytest.mark.smoke
def test_an_ordinary_user_neither_enters_nor_changes_nor_ends_a_lab_of_root(lab: RootsLab) -> None:
    record = state.read_record(lab.root)
    assert record is not None
    files, pids = below(lab.root), lab.processes
    assert len(pids) >= 2
    names = sorted({*(file for file in files if Path(file).is_socket()), *sockets(record.namespaces)})
    assert {Path(one).name for one in names} >= {"control", "grpc", "h0", "h3", "h0.sock", "h3.sock"}, "uverbs as well"
    namespaces = [*(f"/run/netns/{name}" for name in record.namespaces), *(f"/proc/{pid}/ns/net" for pid in pids)]
    with subprocess.Popen(["sleep", "60"]) as other:
        of_root: dict[str, list[Any]] = {
            "connect": [each for each in names if each in files],
            "look_into": [other.pid],
            "signals": [other.pid],
        }
        assert achieved(0, of_root) == of_root, "the same tries of root succeed"
    tries: dict[str, list[Any]] = {
        "connect": names, "change": [*files, *namespaces[:1], "/run/netns", "/run"], "signals": pids, "look_into": pids,
        "enter": namespaces, "make_folder": ["/run/mrclab.theirs", "/run/netns/theirs"],
        "pass_for": [str(lab.root / "lab.json")],
    }  # fmt: skip
    assert achieved(BEN, tries) == {name: [] for name in tries}
    assert lab.public(achieved(BEN, {"read": files})["read"]) <= PUBLIC
    told = json.loads(lab.words("status", "--format", "json"))
    assert (told["phase"], told["switches_silent"], told["processes"]) == ("running", [], len(pids))


def test_a_lab_of_root_goes_on_while_an_ordinary_user_holds_locks_and_names(lab: RootsLab) -> None:
    """Everything that can be opened is locked, also for reading only; names that root might take are taken."""
    deep = [str(lab.shared / "mrclab-launch-theirs")]
    tries: dict[str, list[Any]] = {
        "lock": below(lab.root), "take_name": [f"@mrclab/uverbs/h{number}" for number in range(4)],
        "make_deep": deep, "make_folder": [str(lab.shared / f"mrclab-cache-{os.geteuid()}"), str(lab.shared / "runs")],
        "pass_for": [str(lab.root / "lab.json")],
    }  # fmt: skip
    before = set(lab.processes)
    with trying(BEN, tries) as done:
        assert not {Path(path).name for path in done["lock"]} & {"lock", "faults.lock", "token"}
        assert (done["make_deep"], done["take_name"]) == (tries["make_deep"], tries["take_name"])
        assert "link-down" in lab.words("fault", "link-down", "p0l0-p0s0")
        lab.words("undo", "all")
        lab.words("traffic", "stop", "long")
        lab.words("launch", "--ranks", "h0,h1", "--", "true")
        told = json.loads(lab.words("status", "--format", "json"))
        assert (told["switches_silent"], told["faults"]) == ([], [])
        assert set(lab.processes) <= before
        down = lab.words("down")
        assert "is down" in down
        assert "waiting" not in down
        assert not lab.root.exists()
        assert all(Path(each).is_dir() for each in deep)


# --- two ordinary users in virtual time ---------------------------------------------------------------------------


class Anna:
    """An ordinary user with a home and a folder to work in, where she types commands in virtual time."""

    def __init__(self, shared: Path) -> None:
        self.home, self.work, self.shared = shared.parent / "home", shared.parent / "work", shared
        for folder in (self.home, self.work):
            folder.mkdir()
            os.chown(folder, ANNA, ANNA)

    def environment(self, home: Path) -> dict[str, str]:
        packages = os.pathsep.join([*map(str, import_roots()), sysconfig.get_paths()["purelib"]])
        own = {"HOME": str(home), "TMPDIR": str(self.shared), "PYTHONPATH": packages, "MRCLAB_COMPILED": "off"}
        return {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", **own}

    def start(self, *words: str, umask: int = 0o022, home: Path | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [PYTHON, "-P", *words], user=ANNA, group=ANNA, extra_groups=[], umask=umask, cwd=self.work,
            env=self.environment(home or self.home), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def said(self, *words: str, umask: int = 0o022, home: Path | None = None, status: int = 0) -> str:
        process = self.start(*words, umask=umask, home=home)
        output, _ = process.communicate(timeout=LIMIT_S)
        assert process.returncode == status, output
        return output


def sweep(seeds: int) -> tuple[str, ...]:
    return ("-m", "cli", "sweep", "smoke", "--seeds", str(seeds), "--time", "0.3", "--workers", "1", "--plain")


@pytest.fixture
def anna(shared: Path) -> Anna:
    made = Anna(shared)
    process = made.start("-c", "import cli, numpy, rich")
    if process.wait(LIMIT_S):
        pytest.skip(f"{PYTHON} of another user cannot import this checkout: {process.communicate()[0]}")
    return made


@pytest.mark.slow
def test_an_ordinary_user_holds_up_no_work_of_another(anna: Anna) -> None:
    anna.said(*sweep(2))
    files = [*below(anna.home), *below(anna.work)]
    assert any(file.endswith("rows.sqlite") for file in files)
    assert achieved(BEN, {"change": files}) == {"change": []}
    tries = {"lock": [*files, str(anna.shared)], "make_deep": [str(anna.shared / "mrclab-run-theirs")]}
    with trying(BEN, tries) as done:
        locked = {Path(path).name for path in done["lock"]}
        assert not any(name.endswith((".lock", ".sqlite")) or name == LOCK for name in locked)
        running = anna.start(*sweep(3))
        seen: set[int] = set()
        got: dict[str, list[object]] = {"signals": [], "look_into": []}
        while running.poll() is None:
            seen |= (new := {running.pid, *descendants(running.pid)} - seen)
            for name, what in achieved(BEN, dict.fromkeys(got, sorted(new))).items() if new else ():
                got[name] += what
            with suppress(subprocess.TimeoutExpired):
                running.wait(0.1)
        output = running.communicate()[0]
        assert running.returncode == 0, output
        assert "1 run made, 2 kept from before" in output
        assert "waiting" not in output, "no lock is held that it needs"
        assert got == {"signals": [], "look_into": []}
        assert len(seen) >= 2, "the worker as well"


ASK_FOR_THE_CACHE = ("-c", "from common import cache; print(cache.directory())")


def test_the_name_of_a_users_replacement_for_the_cache_can_be_taken_by_others(anna: Anna) -> None:
    home = anna.home.parent / "read-only"
    home.mkdir()
    with trying(BEN, {"make_folder": [str(anna.shared / f"mrclab-cache-{ANNA}")]}):
        first, second = (anna.said(*ASK_FOR_THE_CACHE, home=home).splitlines()[-1] for _ in range(2))
    assert first == second
    assert Path(first).parent.stat().st_uid == ANNA


@pytest.mark.slow
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_umask_says_what_others_read_of_a_run(umask: int, anna: Anna) -> None:
    """Folders with their umask; what others may not lock is never readable."""
    words = ("-m", "cli", "run", "smoke", "--world", "simulated", "--seed", "1", "--until", "0.1", "--plain")
    anna.said(*words, umask=umask, status=3)
    made = [file for file in below(anna.work / "runs") if not Path(file).is_symlink()]
    assert bool(achieved(BEN, {"read": made})["read"]) == (umask == 0o022)
    modes = {Path(file).stat().st_mode & 0o777 & ~umask == Path(file).stat().st_mode & 0o777 for file in made}
    assert modes == {True}, "also in a folder that is open to others"
