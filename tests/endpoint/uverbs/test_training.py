"""The job over uverbs of two NICs in memory: sums, weights to the bit, a network that loses, and one that is gone."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import mrclab
from benchmarks.rig.uverbs_rig import Rig, rig
from mrclab.errors import JobFailedError
from mrclab.mesh import mesh
from mrclab.training import __main__ as job, ring as ring_module
from mrclab.training.model import Model, make_data
from mrclab.training.ring import RingAllReduce
from page.feed import parsed
from tests.helpers.waiting import at_once, eventually


def run_job(made: Rig, folder: Path, *words: str) -> list[int]:
    """Both ranks; their exit statuses."""
    statuses = [-1, -1]

    def run(rank: int) -> None:
        common = ["--rank", str(rank), "--ranks", "h0,h1", "--meet", str(folder / "meet"), "--quiet"]
        place = ["--device", made.names[rank], "--journal", str(folder / f"h{rank}.jsonl")]
        statuses[rank] = job.main([*common, *place, "--hidden", "64", *words])

    at_once([partial(run, rank) for rank in range(2)], 120)
    return statuses


def steps(folder: Path, rank: int) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in (folder / f"h{rank}.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "step"]


def test_the_gradient_is_that_of_the_loss_by_differences():
    pictures, labels = make_data(3, 40)
    model = Model(3, 16)
    _, gradient = model.gradient(pictures, labels)
    for place in (0, 500, 64 * 16 + 3, 64 * 16 + 16 + 30, len(model.weights) - 1):
        moved = []
        for sign in (1, -1):
            other = Model(3, 16)
            other.weights[place] += np.float32(sign * 1e-2)
            moved.append(other.gradient(pictures, labels)[0])
        assert gradient[place] == pytest.approx((moved[0] - moved[1]) / 2e-2, abs=2e-3)


@contextmanager
def ring_of_two(made: Rig, items: int = 1000) -> Iterator[tuple[list[mrclab.Context], list[RingAllReduce]]]:
    contexts = [mrclab.Context(name) for name in made.names]
    rings = [RingAllReduce(context, rank, 2, items) for rank, context in enumerate(contexts)]
    for one in rings:
        one.connect([other.info() for other in rings])
    yield contexts, rings
    for context in contexts:
        context.close()


def test_ring_sums_are_numpys_sum_whatever_the_length() -> None:
    with rig() as made:
        for items in (1, 7, 1000, 100_001):
            generator = np.random.default_rng(items)
            with ring_of_two(made, items) as (_, rings):
                for _ in range(3):
                    vectors = [generator.standard_normal(items).astype(np.float32) for _ in range(2)]
                    found: list[np.ndarray] = [np.zeros(0)] * 2

                    def run(rank: int, vectors=vectors, found=found, rings=rings) -> None:
                        found[rank] = rings[rank].sum(vectors[rank])

                    at_once([partial(run, rank) for rank in range(2)])
                    assert np.array_equal(found[0], vectors[0] + vectors[1])  # of two, the order does not matter
                    assert np.array_equal(found[1], found[0])


def summing(ring: RingAllReduce, results: list[object]) -> threading.Thread:
    """A thread that adds the sum, or why there is none, to the results."""

    def run() -> None:
        try:
            results.append(ring.sum(np.ones(1000, np.float32))[0])
        except JobFailedError as error:
            results.append(str(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def test_a_rank_whose_neighbour_was_killed_ends_and_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """MRC retries for ever, and a rank that only receives has nothing to retry."""
    monkeypatch.setattr(mesh, "STALL_NS", 0)
    results: list[object] = []
    with rig() as made, ring_of_two(made) as (contexts, rings):
        contexts[1].close()  # as its NIC does when a program was killed
        summing(rings[0], results).join(20)
        assert results == ["rank 0: rank 1 has not answered for 0.4 s"]


def test_a_rank_that_computes_for_long_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh, "STALL_NS", 0)
    monkeypatch.setattr(ring_module, "QUIET_RTTS", 1)
    results: list[object] = []
    with rig() as made, ring_of_two(made) as (_, rings):
        threads = [summing(rings[0], results)]
        asked = made.sent + 5 * mesh.SILENT_RTTS  # a ping to each neighbour and its answer are four
        eventually(lambda: made.sent > asked or bool(results), "as many signs of life as silence would need")
        threads.append(summing(rings[1], results))
        for thread in threads:
            thread.join(20)
        assert results == [2.0, 2.0]


def test_the_job_learns_and_its_weights_are_one_processes_own_to_the_bit(tmp_path):
    with rig() as made:
        assert run_job(made, tmp_path, "--steps", "60", "--rate", "0.1") == [0, 0]
    found = [steps(tmp_path, rank) for rank in range(2)]
    assert [line["weights"] for line in found[0]] == [line["weights"] for line in found[1]]
    losses = [float(str(line["loss"])) for line in found[0]]
    assert losses[0] > 2 * losses[-1]
    pictures, labels = make_data(1, 4096)
    model, draw = Model(1, 64), np.random.default_rng(1)
    for line in found[0]:
        batch = draw.integers(0, 4096, 64)
        parts = [model.gradient(pictures[half], labels[half])[1] for half in (batch[:32], batch[32:])]
        model.step((parts[0] + parts[1]) / np.float32(2), 0.1)
        assert model.digest() == line["weights"]


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:overflow", "ignore:invalid value")
def test_steps_of_a_job_that_diverges_are_lines_that_browsers_read(tmp_path, capsys):
    """NaN and Infinity are no JSON, though Python writes and reads them."""
    with rig() as made:
        assert run_job(made, tmp_path, "--steps", "4", "--rate", "1000") == [0, 0]
    lines = [parsed(line) for line in (tmp_path / "h0.jsonl").read_text().splitlines()]
    found = ["loss" in line for line in lines if line["kind"] == "step"]
    assert (found[0], found[-1]) == (True, False)


def test_frames_that_are_lost_change_no_bit(tmp_path):
    for name in ("clean", "lossy"):
        (tmp_path / name).mkdir()
        with rig() as made:
            made.lose_every = 20 if name == "lossy" else 0
            assert run_job(made, tmp_path / name, "--steps", "15") == [0, 0]
            assert (made.lost > 10) == (name == "lossy")
    weights = [[line["weights"] for line in steps(tmp_path / name, 0)] for name in ("clean", "lossy")]
    assert weights[0] == weights[1]


def test_a_job_whose_network_is_gone_dies_and_says_why(tmp_path, capsys):
    with rig("roce", timeout=10, retry_count=1) as made:
        made.lose_every = 1
        assert 1 in run_job(made, tmp_path, "--steps", "5")
    assert "retry_exceeded" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        *(("--steps", value, "between 1 and 1000000000") for value in (0, -1, 10**9 + 1)),
        *(("--samples", value, "between 1 and 1048576") for value in (0, -5, 1 << 40)),
        *(("--batch", value, "between 1 and 16384") for value in (0, -32, 1 << 30)),
        *(("--hidden", value, "between 1 and 16384") for value in (0, -512, 1 << 30)),
        ("--seed", -1, "at least 0"),
        *(("--rate", value, "above 0 and at most 1000") for value in ("nan", "inf", "-inf", "0", "-0.1", "1e+39")),
    ],
)
def test_a_count_or_rate_that_no_job_can_have_is_refused_with_the_rule(option, value, rule, capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        job.main(["--rank", "0", "--ranks", "h0,h1", "--meet", str(tmp_path / "meet"), f"{option}={value}"])
    assert ended.value.code == 2
    assert f"{option} must be {rule} (got {value})" in capsys.readouterr().err
    assert not (tmp_path / "meet").exists()
