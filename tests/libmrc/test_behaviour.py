"""Programs in C over the library and two NICs in memory: what arrives, what completes, what fails or is refused."""

import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rig.uverbs_rig import rig
from common import uverbs
from endpoint.uverbs.refusal import ERRNOS
from running import sdk
from switch.native.build import compiler
from tests.helpers.stranger import NEEDS_ROOT, uverbs_of_a_stranger
from tests.libmrc.compiled import REQUIREMENTS, SANITIZERS, compiled

pytestmark = REQUIREMENTS
HERE = Path(__file__).parent
CASES = [
    "writes", "immediates", "unsignaled", "channels", "outside", "unmapped", "forks", "built", "threads", "refusals",
    "attributes", "profiles", "controls", "huge", "receives", "stale", "parameters",
    "versions", "busy", "empty",
]  # fmt: skip
NO_HUGE_PAGES = 77

Done = subprocess.CompletedProcess[str]
Programs = Callable[[str], str]


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """The path of a program by its name, compiled once with the library under sanitizers."""
    folder = tmp_path_factory.mktemp("sanitized")
    return cache(lambda name: compiled(HERE / f"{name}.c", folder, *SANITIZERS))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(HERE / "behaviour.c", tmp_path_factory.mktemp("plain"))


def over_two_nics(*words: str, named: Sequence[str] = (), after: Sequence[str] = (), **rigged: Any) -> Done:
    """A command with the devices of two NICs behind it, the first of which may have other names."""
    with rig(**rigged) as made:
        devices = [*named, *(f"mrc_{name}" for name in made.names[len(named) :])]
        command = [*words, *devices, *after]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


def succeeds(done: Done) -> None:
    if done.returncode == NO_HUGE_PAGES:
        pytest.skip("no huge pages: echo 4 > /proc/sys/vm/nr_hugepages")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("case", CASES)
@pytest.mark.smoke
def test_a_program_finds_what_verbs_promise(case: str, sanitized: Programs) -> None:
    succeeds(over_two_nics(sanitized("behaviour"), case))


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
    succeeds(over_two_nics(sanitized("behaviour"), "comma"))


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
def test_what_is_refused_is_logged_with_the_reason(case: str, words: list[str], plain: str) -> None:
    said = over_two_nics(plain, case).stderr
    assert [word for word in words if word not in said] == []


@NEEDS_ROOT
def test_a_program_does_not_talk_to_a_socket_that_another_user_has_opened(plain: str) -> None:
    """Whoever binds a host's name before the agent does would hear every program of the host."""
    with uverbs_of_a_stranger("h4098"):
        done = over_two_nics(plain, "writes")
        assert done.returncode == 0, "with a stranger's socket beside its own, a program uses its own"
        done = over_two_nics(plain, "writes", named=["mrc_h4098"])
    assert done.returncode != 0
    assert "the socket of h4098 belongs to user 65534, not to the lab or to you" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind: apt-get install valgrind")
@pytest.mark.parametrize("case", CASES)
def test_valgrind_finds_nothing_in_the_library_as_it_is_shipped(case: str, plain: str) -> None:
    words = ["valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full", "--child-silent-after-fork=yes"]
    succeeds(over_two_nics(*words, plain, case))


def test_threads_share_a_nic_without_a_race(tmp_path: Path) -> None:
    succeeds(over_two_nics(compiled(HERE / "behaviour.c", tmp_path, "-g", "-O1", "-fsanitize=thread"), "threads"))


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


def test_a_wall_clock_that_is_set_forward_does_not_end_a_programs_nic(sanitized: Programs) -> None:
    succeeds(over_two_nics(sanitized("clock")))


# --- calls that fail ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "limits"),
    [("gone", {}), ("whole", {}), ("descriptors", {}), ("limits", {"regions": 8, "cqs": 8, "channels": 4, "hints": 4})],
)
def test_a_call_that_fails_names_the_bad_request_and_leaves_nothing_behind(case, limits, sanitized) -> None:
    succeeds(over_two_nics(sanitized("failures"), case, limits=uverbs.ProgramLimits(**limits)))


def test_the_first_request_of_a_whole_message_for_a_dead_agent_is_the_bad_one(sanitized, monkeypatch) -> None:
    monkeypatch.setenv("WHOLE_MESSAGE", "1")
    succeeds(over_two_nics(sanitized("failures"), "gone"))


def test_an_error_of_the_agents_kernel_keeps_its_errno(sanitized: Programs) -> None:
    """The kernel lets this process, where the agent is, make no longer file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((64 << 20) - 1, before[1]))
    try:
        succeeds(over_two_nics(sanitized("failures"), "kernel"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_the_library_knows_each_errno_that_the_agent_names() -> None:
    known = re.findall(r'{"\((E[A-Z]+)\)", (E[A-Z]+)}', (sdk.SOURCE / "uverbs.c").read_text())
    assert sorted(known) == sorted((name, name) for name in ERRNOS)


@pytest.mark.parametrize("transport", ["mrc", "roce"])
@pytest.mark.parametrize(
    "case", ["inlined", "wrong", "retries", "signals", "events", "drained", "withdrawn", "loopback", "limits"]
)
def test_verbs_keep_their_promises_when_something_fails(case: str, transport: str, sanitized: Programs) -> None:
    succeeds(over_two_nics(sanitized("promises"), case, transport=transport, timeout_rtts=2))


# --- calls that hardware refuses -----------------------------------------------------------------------------------


TOLD = {
    "masks": [
        "12 x ibv_modify_qp from RESET to INIT needs ACCESS_FLAGS",
        "4 x ibv_modify_qp from RESET to INIT does not take SQ_PSN",
        "1 x ibv_modify_qp: ah_attr.port_num must be 1, the port (got 0)",
        "1 x a queue pair goes from RESET to INIT only, not to ERR",
    ],
    "legal": [],
    "access": ["4 x 9 packets of a peer to memory of another protection domain, or to a queue pair whose"],
    "domains": ["1 x lkey 0x", "1 x 9 packets of a peer"],
    "overrun": ["1 x a completion queue of 4 places with completions that were not polled gets one more"],
    "unmapped": ["1 x ibv_reg_mr: 12288 bytes from 0x"],
    "mrc": ["3 x mrc_modify_qp from RESET to INIT needs ACCESS_FLAGS, PKEY_INDEX"],
}
"""By case, how the lines begin that say at the end what a NIC refuses."""


@pytest.mark.parametrize("transport", ["mrc", "roce"])
@pytest.mark.parametrize("strict", ["strict", "lenient"])
@pytest.mark.parametrize("case", TOLD)
def test_a_nic_that_is_strict_refuses_and_another_tells(case, strict, transport, sanitized, monkeypatch) -> None:
    monkeypatch.setenv("MRCLAB_STRICT", "1" if strict == "strict" else "0")
    done = over_two_nics(sanitized("strict"), case, after=[strict], transport=transport)
    succeeds(done)
    told = [line for line in done.stderr.splitlines() if " x " in line]
    if strict == "strict":
        assert told == []
        assert ("(--strict)" in done.stderr) is (case not in ("legal", "access"))
    else:
        assert len(told) == len(TOLD[case]), told
        for line, expected in zip(told, TOLD[case], strict=True):
            assert line.removeprefix("libmrc: warning: ").startswith(expected)
        assert done.stderr.count("./lab exec --strict refuses it as well") == bool(told)
