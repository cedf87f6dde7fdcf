"""Programs that are made: collectives, and steps of training."""

import random
from collections import Counter
from itertools import islice

import numpy as np
import pytest

from schedules import collectives, goal, operation
from schedules.collectives import CollectiveSchedule
from schedules.errors import ScheduleError
from schedules.goal import GoalReader
from schedules.schedule import Schedule
from schedules.training import MODELS, TrainingSchedule, TransformerModel, passes, program


def written(kind: str, **given: int) -> Schedule:
    what = CollectiveSchedule(**given)
    what.check(kind)
    return GoalReader(f"{kind}.goal").read(collectives.KINDS[kind](what))


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_each_rank_sends_what_the_algorithm_says(ranks):
    """Of n bytes a ring all-reduce sends 2 (n - 1) / n, an all-gather and an all-to-all (n - 1) / n."""
    size = 4 * ranks * 1000
    for kind, shares in (("all_reduce", 2 * (ranks - 1)), ("all_gather", ranks - 1), ("all_to_all", ranks - 1)):
        schedule = written(kind, ranks=ranks, size=size, segment=1024, rounds=3)
        assert schedule.most_bytes() == 3 * shares * size // ranks
        assert schedule.bytes == ranks * 3 * shares * size // ranks


def test_a_share_is_cut_into_segments_of_whole_numbers():
    assert list(CollectiveSchedule(ranks=3, size=1000, segment=256).pieces()) == [256, 80]  # 84 numbers of 4 bytes
    assert list(CollectiveSchedule(ranks=4, size=4096, segment=4096).pieces()) == [1024]
    for size in (4, 8, 12, 400, 404):
        what = CollectiveSchedule(ranks=1, size=size, segment=8)
        assert what.cuts == len(list(what.pieces()))


@pytest.mark.parametrize("kind", list(collectives.KINDS))
def test_a_program_is_written_as_it_is_made(kind):
    """A list of all messages of this one would take more memory than a machine has."""
    lines = list(islice(collectives.KINDS[kind](CollectiveSchedule(ranks=2, size=1 << 50, segment=4)), 5))
    assert lines[:3] == ["num_ranks 2", "", "rank 0 {"]
    assert "send 4b" in lines[3] or "recv 4b" in lines[3]


@pytest.mark.parametrize("kind", list(collectives.KINDS))
@pytest.mark.parametrize("compute_ns", [0, 5])
def test_operations_are_counted_for_every_kind(kind, compute_ns):
    what = CollectiveSchedule(ranks=3, size=1000, segment=256, rounds=2, compute_ns=compute_ns)
    assert what.operations(kind) == len(
        written(kind, ranks=3, size=1000, segment=256, rounds=2, compute_ns=compute_ns).kind
    )


@pytest.mark.parametrize("kind", list(collectives.KINDS))
def test_a_program_that_would_never_be_written_to_its_end_is_refused(kind):
    with pytest.raises(ScheduleError, match="the program must have at most 100000000 operations"):
        CollectiveSchedule(ranks=2, size=1 << 32, segment=4).check(kind)
    CollectiveSchedule(ranks=4096).check(kind)


def test_a_ring_takes_as_many_steps_as_it_has():
    """The longest chain of an all-reduce: 2 (n - 1) messages, one after the other, and the last acknowledgement."""
    ring = written("all_reduce", ranks=5, size=5 * 62_500, segment=65_536)
    message_ns = 5_000 + 62_500 * 8 // 100
    assert ring.chain_ns == 8 * message_ns + 5_000


def test_rounds_wait_for_each_other_and_for_calculations():
    one = written("all_to_all", ranks=3, size=12, rounds=1, compute_ns=7_000)
    three = written("all_to_all", ranks=3, size=12, rounds=3, compute_ns=7_000)
    assert one.chain_ns > 7_000
    assert three.chain_ns == 3 * one.chain_ns
    part = three.part(0)
    assert [part.amount[number] for number in range(len(part.kind)) if part.kind[number] == operation.CALC] == [
        7_000, 0, 7_000, 0, 7_000,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"ranks": 1}, "--ranks must be between 2 and 4096"),
        ({"ranks": 8, "size": 16}, "--size must be between 32"),
        ({"ranks": 8, "segment": 6}, "--segment must be a multiple of 4 bytes"),
        ({"ranks": 8, "rounds": 0}, "--rounds must be between 1"),
        ({"ranks": 8, "compute_ns": -1}, "--compute must be between 0"),
    ],
)
def test_impossible_collectives_are_refused(given, complaint):
    with pytest.raises(ScheduleError, match=complaint):
        CollectiveSchedule(**given).check()


def read(what: TrainingSchedule) -> Schedule:
    what.check()
    return goal.GoalReader("step.goal").read(program(what))


def sent(schedule: Schedule) -> Counter[tuple[int, int]]:
    """Bytes by (rank, peer)."""
    found: Counter[tuple[int, int]] = Counter()
    for number in np.flatnonzero(schedule.kind == operation.SEND):
        found[int(schedule.rank[number]), int(schedule.peer[number])] += int(schedule.amount[number])
    return found


def test_the_layer_of_llama_8b_has_the_published_weights() -> None:
    """8.03 billion in all: 32 layers, and two embeddings of 128,256 tokens."""
    model = MODELS["llama-8b"]
    assert round((32 * model.weights + 2 * 128_256 * 4096) / 1e9, 2) == 8.03
    model = MODELS["llama-70b"]
    assert round((80 * model.weights + 2 * 128_256 * 8192) / 1e9, 1) == 70.6


def test_every_rank_sends_what_the_formulas_say() -> None:
    """Two ranks share a layer, two stages of two layers, two replicas, three microbatches."""
    what = TrainingSchedule(tensor=2, pipeline=2, data=2, microbatches=3)
    activations = 1024 * 1024 * 2
    gradients = (4 * 1024**2 + 3 * 1024 * 2816) * 2 // 2
    by_pair = sent(read(what))
    for rank in range(8):
        tensor, data, stage = rank % 2, rank // 2 % 2, rank // 4
        # A ring of two sends the whole buffer; four all-reduces per layer and microbatch, two layers, three of them.
        assert by_pair.pop((rank, rank ^ 1)) == 4 * 2 * 3 * activations
        assert by_pair.pop((rank, tensor + 2 * data + 4 * (1 - stage))) == 3 * activations // 2
        assert by_pair.pop((rank, rank ^ 2)) == 2 * gradients
    assert not by_pair


def test_calculations_take_the_time_of_their_multiplications() -> None:
    what = TrainingSchedule(tensor=2, pipeline=1, data=1, layers=1, microbatches=1, flops=10**12)
    schedule = read(what)
    mine = (schedule.rank == 0) & (schedule.kind == operation.CALC)
    weights = 4 * 1024**2 + 3 * 1024 * 2816
    forward_ns = 1024 * (2 * weights + 4 * 1024 * 1024) / 2 / 1e12 * 1e9
    assert int(schedule.amount[mine].sum()) == pytest.approx(3 * forward_ns, rel=1e-6)


def test_passes_alternate_after_the_pipeline_is_full() -> None:
    """Figure 4 of the paper, the upper one: four stages."""
    assert [list(passes(stage, 4, 4)) for stage in (3, 2)] == [
        [(True, 0), (False, 0), (True, 1), (False, 1), (True, 2), (False, 2), (True, 3), (False, 3)],
        [(True, 0), (True, 1), (False, 0), (True, 2), (False, 1), (True, 3), (False, 2), (False, 3)],
    ]
    for stage in range(8):
        order = list(passes(stage, 8, 3))
        assert sorted(order) == sorted([(forward, number) for forward in (True, False) for number in range(3)])


def test_every_division_is_a_program_that_ends_and_its_operations_are_counted() -> None:
    """Reading checks that each send has its receive, and that no operation waits for itself."""
    draw = random.Random(11)
    for _ in range(24):
        pipeline = draw.randint(1, 4)
        what = TrainingSchedule(
            tensor=draw.randint(1, 4), pipeline=pipeline, data=draw.randint(1, 3), layers=pipeline * draw.randint(1, 3),
            tokens=8, microbatches=draw.randint(1, 3), rounds=draw.randint(1, 2),
        )  # fmt: skip
        if what.ranks > 1:
            schedule = read(what)
            assert schedule.ranks == what.ranks == len(set(schedule.rank.tolist()))
            assert len(schedule.kind) == what.operations(), what


def test_a_step_waits_for_the_gradients_of_the_one_before() -> None:
    one, two = (read(TrainingSchedule(layers=2, tokens=64, rounds=rounds)) for rounds in (1, 2))
    assert two.messages == 2 * one.messages
    assert two.chain_ns > 1.9 * one.chain_ns


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        (TrainingSchedule(model="gpt"), "--model must be one of small, llama-8b, llama-70b (got 'gpt')"),
        (TrainingSchedule(tensor=0), "--tensor must be between 1 and 64 (got 0)"),
        (
            TrainingSchedule(tensor=1, pipeline=1, data=1),
            "--tensor, --pipeline and --data must give 2 to 4096 ranks (got 1)",
        ),
        (TrainingSchedule(pipeline=3), "--layers must be a multiple of --pipeline (got 4 layers for 3)"),
        (TrainingSchedule(microbatches=0), "--microbatches must be between 1 and 65536 (got 0)"),
        (
            TrainingSchedule(model="llama-70b", tensor=1, pipeline=1, data=1024, microbatches=1),
            "at most 100000000 operations (this one has 335544320)",
        ),
        (
            TrainingSchedule(model="llama-70b", tensor=8, pipeline=8, data=16, microbatches=4096),
            "at most 100000000 operations",
        ),
    ],
)
def test_steps_that_cannot_be_are_refused(what: TrainingSchedule, complaint: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        what.check()
    assert complaint in str(refused.value)


def test_models_are_divided_by_layers_and_tokens_that_were_asked_for() -> None:
    assert TrainingSchedule(model="llama-8b", layers=2, tokens=512).sizes() == TransformerModel(
        2, 4096, 14_336, 0.25, 512
    )
