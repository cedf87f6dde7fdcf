"""Training steps: what each rank sends, by the formulas of the paper worked out by hand; the order of passes; refusals.

The formulas are those of Narayanan et al. (SC 2021), section 2.2 for 1F1B and section 3.2 for what is communicated.
"""

import random
from collections import Counter

import numpy as np
import pytest

from schedules import goal, operation
from schedules.errors import ScheduleError
from schedules.schedule import Schedule
from schedules.training import MODELS, TrainingSchedule, TransformerModel, passes, program


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


@pytest.mark.parametrize(
    "what",
    [
        TrainingSchedule(tensor=1, pipeline=1, data=2, layers=1, tokens=8),
        TrainingSchedule(tensor=4, pipeline=1, data=1, layers=3, tokens=8),
        TrainingSchedule(tensor=1, pipeline=4, data=1, layers=4, tokens=8, microbatches=2),
        TrainingSchedule(tensor=3, pipeline=2, data=3, layers=2, tokens=8, rounds=3, microbatches=1),
    ],
)
def test_every_division_is_a_program_that_ends(what: TrainingSchedule) -> None:
    """Reading checks that each send has its receive, and that no operation waits for itself."""
    schedule = read(what)
    assert schedule.ranks == what.ranks
    assert len(set(schedule.rank.tolist())) == what.ranks
    assert len(schedule.kind) == what.operations()


def test_operations_are_counted_for_every_division() -> None:
    draw = random.Random(11)
    for _ in range(60):
        pipeline = draw.randint(1, 3)
        what = TrainingSchedule(
            tensor=draw.randint(1, 4), pipeline=pipeline, data=draw.randint(2, 5), layers=pipeline * draw.randint(1, 4),
            tokens=8, microbatches=draw.randint(1, 4), rounds=draw.randint(1, 3),
        )  # fmt: skip
        found = sum(any(word in f" {line}" for word in (": calc ", ": send ", ": recv ")) for line in program(what))
        assert what.operations() == found, what


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
