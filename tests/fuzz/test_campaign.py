"""The fuzzers' campaign: tests of random input, each for its share of a budget, with a seed from the commit.

MRCLAB_FUZZ_MINUTES is the budget of each target (0.5 by default), MRCLAB_FUZZ_SEED the first seed.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.helpers.fuzzing import SECONDS, SEED, first_seed
from tests.helpers.transport.native_codec import SANITIZE, compiler

ROOT = Path(__file__).parents[2]
CODEC = "tests/endpoint/mrc/test_codec_in_c.py"
FILES = "tests/fuzz/test_damaged_files.py"
P4RUNTIME = "tests/switch/p4rt/test_p4rt_limits.py"
TARGETS = {
    "frames": ["tests/endpoint/mrc/test_bounds.py::test_a_million_hostile_packets_do_no_harm[0]"],
    "codec": [
        f"{CODEC}::test_{name}"
        for name in (
            "a_damaged_frame_is_read_by_both_or_by_neither", "any_bytes_are_taken", "it_places_what_a_slice_would",
            "it_reads_what_the_plain_codec_reads", "it_seals_as_the_plain_codec", "it_writes_the_plain_codecs_frame",
        )
    ],
    "agent": ["tests/endpoint/test_control_socket.py::test_any_json_is_answered_once"],
    "uverbs": [
        "tests/endpoint/uverbs/test_hostile.py"
        "::test_whatever_is_said_is_answered_or_ends_the_session_and_closing_gives_everything_back",
    ],
    "readers": [
        f"{FILES}::test_a_damaged_file_is_read_or_refused_in_words",
        "tests/topo/test_plan.py::test_any_document_is_a_plan_or_is_refused_in_words",
    ],
    "runs": [f"{FILES}::test_a_command_on_a_damaged_run_ends_in_words"],
    "p4runtime": [
        f"{P4RUNTIME}::test_any_batch_is_carried_out_or_refused_and_what_is_read_can_be_deleted",
        f"{P4RUNTIME}::test_any_bytes_over_grpc_are_answered",
    ],
    "front end": [f"{FILES}::test_a_damaged_program_is_compiled_or_refused"],
    "engines": [
        "tests/switch/native/test_native_hostile_programs.py"
        "::test_a_damaged_program_is_refused_or_runs_alike_on_both_engines[0]",
    ],
    "notifications": [
        "tests/switch/native/test_native_new_constructs.py::test_random_lives_of_new_constructs_agree[0]",
        "tests/switch/native/test_native_new_constructs.py::test_random_programs_of_new_constructs_agree[0]",
        "tests/switch/native/test_native_notifications.py::test_controllers_are_told_the_same_by_both_engines[0]",
    ],
}  # fmt: skip

SANITIZED = {"codec": {SANITIZE: "1"}, "notifications": {"MRCLAB_NATIVE_SANITIZE": "address"}}
"""The variable by which a target's C code is built with AddressSanitizer: digests and times of hits are kept in C."""


def environment(target: str) -> Mapping[str, str]:
    """Everything is interpreted; the C code of some targets is under AddressSanitizer."""
    own = {"MRCLAB_COMPILED": "off"}
    if target in SANITIZED:
        library = subprocess.check_output([*(compiler() or ["cc"]), "-print-file-name=libasan.so"], text=True).strip()
        if not Path(library).is_file():
            pytest.skip("the C compiler has no libasan.so")
        own |= {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"} | SANITIZED[target]
    return own


def fuzzed(target: str, seconds: float) -> subprocess.CompletedProcess[str]:
    share = {SECONDS: str(seconds / len(TARGETS[target])), SEED: str(first_seed())}
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "slow or not slow", *TARGETS[target]]
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env={**os.environ, **environment(target), **share},
        capture_output=True, text=True, check=False, timeout=20 * seconds + 600,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_found(target: str) -> None:
    done = fuzzed(target, 60 * float(os.environ.get("MRCLAB_FUZZ_MINUTES", "0.5")))
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "AddressSanitizer" not in done.stderr
    rounds = re.findall(r"^fuzzed (\d+) rounds: (\S+)", done.stdout, re.MULTILINE)
    assert {name.partition("[")[0] for _, name in rounds} == {name.partition("[")[0] for name in TARGETS[target]}
