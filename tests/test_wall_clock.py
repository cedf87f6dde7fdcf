"""The wall clock may be set at any moment, so no wait, order or duration depends on it: a list of its uses."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.helpers.tracked import NO_ROOMS, files_of, room_of

ROOT = Path(__file__).parents[1]
PYTHON = {
    "time.time", "time.time_ns", "time.localtime", "time.gmtime", "time.ctime", "time.asctime", "time.strftime",
    "time.CLOCK_REALTIME", "time.CLOCK_TAI", "datetime.now", "datetime.utcnow", "datetime.today", "date.today",
}  # fmt: skip
LAST = {name.partition(".")[2] for name in PYTHON}
IMPORTED = re.compile(r"\bimport\b.*\b(?:time|date)|\bfrom (?:time|date)")
OTHERS = {
    ".c": re.compile(
        r"\b(time|gettimeofday|timespec_get|ftime|pthread_cond_timedwait|pthread_mutex_timedlock|sem_timedwait)\("
        r"|\bCLOCK_(?:REALTIME|TAI)\b"
    ),
    ".js": re.compile(r"\bDate\b"),
    ".sh": re.compile(r"\$\(date\b|\bSECONDS\b|-mmin\b|-newermt\b"),
}
OTHERS |= {".h": OTHERS[".c"], "": OTHERS[".sh"]}
ALLOWED = {
    "common/compiled/build.py: time.time": "how long ago a cached file was used, in days",
    "common/journal.py: time.time_ns": "a fact in the first line of a journal, for readers",
    "common/scratch.py: time.time": "a folder without a lock is a leftover after an hour; its age is all that is known",
    "packages/course/course/grading/formats.py: datetime.now": "a date in a file for other programs",
    "endpoint/packet_sockets/driver.py: time.time_ns": "the kernel stamps frames by it; a step is noticed",
    "libmrc/source/stepped.c: gettimeofday(": "libc's function for programs in virtual time",
    "libmrc/source/stepped.c: time(": "libc's function for programs in virtual time",
    "running/directory.py: time.gmtime": "the name of a run's folder, never below the newest one's",
    "running/directory.py: time.strftime": "the name of a run's folder, never below the newest one's",
    "switch/p4rt/streams.py: time.time_ns": "when digests and notifications were sent, by the P4Runtime specification",
    "topo/emulation/state.py: time.time_ns": "when a lab was started, for readers",
}
"""Each use of the wall clock, and why a step of it does no harm there."""


def uses(path: Path, text: str) -> Iterator[str]:
    """The names by which a file reads or waits for the wall clock."""
    if path.suffix == ".py" and IMPORTED.search(text):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and node.attr in LAST:
                name = ".".join(ast.unparse(node).split(".")[-2:])
                if name in PYTHON:
                    yield name
            elif isinstance(node, ast.ImportFrom):
                yield from (name for one in node.names if (name := f"{node.module}.{one.name}") in PYTHON)
    elif pattern := OTHERS.get(path.suffix):
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL) if path.suffix in (".c", ".h", ".js") else text
        yield from (match[0] for match in pattern.finditer(code))


def found(root: Path, files: Iterable[Path]) -> set[str]:
    texts = ((path, path.read_text()) for path in files if path.suffix in {".py", *OTHERS})
    return {f"{path.relative_to(root)}: {use}" for path, text in texts for use in uses(path, text)}


def product() -> list[Path]:
    paths = [path for path in files_of(ROOT) if room_of(path.relative_to(ROOT)) not in NO_ROOMS]
    return [path for path in paths if path.suffix or path == ROOT / "lab"]


@pytest.mark.smoke
def test_every_use_of_the_wall_clock_is_one_that_a_step_does_not_harm() -> None:
    used = found(ROOT, product())
    assert sorted(used - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - used) == [], "no such use any more"


@pytest.mark.parametrize(
    ("name", "text", "use"),
    [
        ("a.py", "import time\nend = time.time() + 3\n", "time.time"),
        ("a.py", "from time import time\n", "time.time"),
        ("a.py", "import datetime\nnow = datetime.datetime.now()\n", "datetime.now"),
        ("a.py", "import time\ntime.clock_gettime(time.CLOCK_REALTIME)\n", "time.CLOCK_REALTIME"),
        ("a.c", "long end = time(NULL) + 30;\n", "time("),
        ("a.c", "clock_gettime(CLOCK_REALTIME, &now);\n", "CLOCK_REALTIME"),
        ("a.c", "pthread_cond_timedwait(&c, &m, &until);\n", "pthread_cond_timedwait("),
        ("a.js", "const end = Date.now() + 3;\n", "Date"),
        ("a.sh", "end=$(date +%s)\n", "$(date"),
        ("lab", 'while [ "$SECONDS" -lt 9 ]\n', "SECONDS"),
    ],
)
def test_a_planted_use_is_found(tmp_path: Path, name: str, text: str, use: str) -> None:
    (tmp_path / name).write_text(text)
    assert found(tmp_path, [tmp_path / name]) == {f"{name}: {use}"}


@pytest.mark.parametrize("text", ["run_time(3); /* time(NULL) */ // time(", "clock_gettime(CLOCK_MONOTONIC, &now);"])
def test_other_clocks_and_comments_are_no_use(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.c").write_text(text)
    assert found(tmp_path, [tmp_path / "a.c"]) == set()
