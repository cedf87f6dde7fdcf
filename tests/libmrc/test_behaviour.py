"""Programs in C over the library and two NICs in memory: what arrives, what completes, what is refused."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import rig
from running import sdk
from switch.native.build import compiler
from tests.helpers.stranger import NEEDS_ROOT, uverbs_of_a_stranger
from tests.libmrc.compiled import SANITIZERS, compiled
from tests.libmrc.requirements import REQUIREMENTS

pytestmark = REQUIREMENTS
SOURCE = Path(__file__).with_name("behaviour.c")
CASES = [
    "writes", "immediates", "unsignaled", "channels", "outside", "unmapped", "forks", "built", "threads", "refusals",
    "attributes", "profiles", "controls", "huge", "receives", "stale", "parameters",
    "versions", "busy", "empty",
]  # fmt: skip
NO_HUGE_PAGES = 77
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def build(folder: Path, *flags: str) -> Run:
    """Compiles the program against the library, both with these flags; what runs one of its cases."""
    program = compiled(SOURCE, folder, *flags)

    def run(case: str, *named: str) -> subprocess.CompletedProcess[str]:
        with rig() as made:
            devices = [f"mrc_{name}" for name in made.names]
            command = [program, case, *named, *devices[len(named) :]]
            return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)

    return run


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return build(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return build(tmp_path_factory.mktemp("sanitized"), *SANITIZERS)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.smoke
def test_a_program_finds_what_verbs_promise(case: str, sanitized: Run) -> None:
    done = sanitized(case)
    if done.returncode == NO_HUGE_PAGES:
        pytest.skip("no huge pages: echo 4 > /proc/sys/vm/nr_hugepages")
    assert done.returncode == 0, done.stderr


COMMA = """comment_char %
escape_char /
LC_NUMERIC
decimal_point ","
thousands_sep ""
grouping -1
END LC_NUMERIC
"""


@pytest.mark.skipif(shutil.which("localedef") is None, reason="no localedef: apt-get install libc-bin")
def test_numbers_do_not_follow_the_locale_of_the_program(tmp_path, monkeypatch, sanitized) -> None:
    (tmp_path / "comma.src").write_text(COMMA)
    words = ["localedef", "-c", "-i", str(tmp_path / "comma.src"), "-f", "ANSI_X3.4-1968", str(tmp_path / "comma")]
    subprocess.run(words, check=False, capture_output=True)  # it warns of what this locale lacks
    if not (tmp_path / "comma" / "LC_NUMERIC").exists():
        pytest.skip("localedef has no charmap here: apt-get install locales")
    monkeypatch.setenv("LOCPATH", str(tmp_path))
    done = sanitized("comma")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("parameters", ["eta is inf; it must be a finite number", "gamma is nan; it must be a finite number"]),
        ("versions", ["num_entries must be at least 1 (got 0)", "a queue of completions has no EV events"]),
        (
            "refusals",
            [
                "a queue pair of type 4: MRC has reliable connections only",
                "opcode 4 of a work request: MRC carries RDMA writes",
                "timeout is 25; it must be from 0 to 24",
            ],
        ),
    ],
)
def test_what_is_refused_is_logged_with_the_reason(case: str, words: list[str], plain: Run) -> None:
    said = plain(case).stderr
    assert [word for word in words if word not in said] == []


@NEEDS_ROOT
def test_a_program_does_not_talk_to_a_socket_that_another_user_has_opened(plain: Run) -> None:
    """Whoever binds a host's name before the agent does would hear every program of the host."""
    with uverbs_of_a_stranger("h4098"):
        done = plain("writes")
        assert done.returncode == 0, "with a stranger's socket beside its own, a program uses its own"
        done = plain("writes", "mrc_h4098")
    assert done.returncode != 0
    assert "the socket of h4098 belongs to user 65534, not to the lab or to you" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind: apt-get install valgrind")
@pytest.mark.parametrize("case", CASES)
def test_valgrind_finds_nothing_in_the_library_as_it_is_shipped(case: str, tmp_path: Path) -> None:
    program = compiled(SOURCE, tmp_path)
    with rig() as made:
        devices = [f"mrc_{name}" for name in made.names]
        words = ["valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full", "--child-silent-after-fork=yes"]
        done = subprocess.run(
            [*words, program, case, *devices], capture_output=True, text=True, check=False, timeout=240
        )
    if done.returncode == NO_HUGE_PAGES:
        pytest.skip("no huge pages: echo 4 > /proc/sys/vm/nr_hugepages")
    assert done.returncode == 0, done.stderr


def test_threads_share_a_nic_without_a_race(tmp_path: Path) -> None:
    done = build(tmp_path, "-g", "-O1", "-fsanitize=thread")("threads")
    assert done.returncode == 0, done.stderr


def test_a_program_outside_of_the_lab_finds_no_device_and_is_told(tmp_path: Path) -> None:
    source = tmp_path / "list.c"
    source.write_text(
        "#include <infiniband/verbs.h>\nint n;\n"
        "int main(void) { ibv_free_device_list(ibv_get_device_list(&n)); return n; }\n"
    )
    program = tmp_path / "list"
    subprocess.run([*compiler(), "-o", str(program), str(source), "-libverbs"], check=True)
    environment = {**os.environ, **sdk.environment(sdk.library())}
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0
    assert "no NIC in this network namespace" in done.stderr
    for stepped, devices in {"5:h0": 1, "h0": 0, "5:": 0, "5:" + "h" * 64: 0}.items():
        found = subprocess.run([str(program)], env={**environment, "MRCLAB_UVERBS": stepped}, check=False)
        assert found.returncode == devices
