"""A training step of a transformer as a GOAL program, divided among ranks by tensor, pipeline and data.

The messages of a step follow Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM" (SC 2021):

- tensor: the ranks of a layer all-reduce the activations twice per layer and pass, forward and backward;
- pipeline: a stage hands each microbatch's activations to the next one, and their gradients back, each rank its share;
  forward and backward passes alternate (1F1B), and the pipeline runs empty at the end of a step;
- data: the replicas all-reduce each layer's gradients as soon as the last backward pass has made them.

Calculations take the time of their multiplications: two per weight and token forward, those of attention besides, and
twice as many backward. All-reduces are rings. Rank numbers count tensor first, then data, then pipeline, as there.
This is a model of a step, not the trace of one: a real job has embeddings, an optimizer, kernels of uneven length.
"""

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple

from schedules.collectives import RANKS_MAX, ROUNDS_MAX
from schedules.errors import ScheduleError

__all__ = ["MODELS", "OPTIONS", "TrainingSchedule", "program"]

ELEMENT_BYTES = 2
"""bfloat16, for activations and gradients."""
TENSOR_TAG, FORWARD_TAG, BACKWARD_TAG, DATA_TAG = 1, 2, 3, 4
COMPUTE, GRADIENTS = 0, 1
"""Processors: gradients leave while the rank computes."""
FLOPS = 400_000_000_000_000
"""Multiplications and additions per second that a GPU achieves."""
OPERATIONS_MAX = 100_000_000
OPTIONS = ("model", "tensor", "pipeline", "data", "layers", "tokens", "microbatches", "flops")
"""Those that no other program has."""


class TransformerModel(NamedTuple):
    """Sizes of a transformer with gated feed-forward layers. `kv_share` is key and value heads per query head."""

    layers: int
    hidden: int
    feed_forward: int
    kv_share: float
    tokens: int
    """Of a sequence, which is a microbatch."""

    @property
    def weights(self) -> int:
        """Of one layer."""
        return round(2 * self.hidden**2 * (1 + self.kv_share)) + 3 * self.hidden * self.feed_forward


MODELS = {
    "small": TransformerModel(4, 1024, 2816, 1.0, 1024),
    "llama-8b": TransformerModel(32, 4096, 14_336, 1 / 4, 8192),
    "llama-70b": TransformerModel(80, 8192, 28_672, 1 / 8, 8192),
}
"""Llama's sizes are those of "The Llama 3 Herd of Models" (2024), table 3."""


@dataclass(frozen=True, slots=True)
class TrainingSchedule:
    """The options of a training job. The numbers of ranks multiply; 0 layers or tokens means the model's own number."""

    model: str = "small"
    tensor: int = 2
    pipeline: int = 2
    data: int = 2
    layers: int = 0
    tokens: int = 0
    microbatches: int = 4
    rounds: int = 1
    flops: int = FLOPS

    @property
    def ranks(self) -> int:
        return self.tensor * self.pipeline * self.data

    def sizes(self) -> TransformerModel:
        """The model with the layers and tokens that were asked for."""
        model = MODELS[self.model]
        return model._replace(layers=self.layers or model.layers, tokens=self.tokens or model.tokens)

    def check(self) -> None:
        """ScheduleError for a number out of its range, or ranks that cannot share the work."""
        if self.model not in MODELS:
            raise ScheduleError(f"--model must be one of {', '.join(MODELS)} (got {self.model!r})")
        ranges = {
            "tensor": (1, 64), "pipeline": (1, 1024), "data": (1, 4096), "layers": (0, 4096), "tokens": (0, 1 << 24),
            "microbatches": (1, 65_536), "rounds": (1, ROUNDS_MAX), "flops": (10**6, 10**18),
        }  # fmt: skip
        for field in fields(self):
            if field.name in ranges:
                value, (low, high) = getattr(self, field.name), ranges[field.name]
                if not low <= value <= high:
                    raise ScheduleError(f"--{field.name} must be between {low} and {high} (got {value})")
        if not 2 <= self.ranks <= RANKS_MAX:
            raise ScheduleError(f"--tensor, --pipeline and --data must give 2 to {RANKS_MAX} ranks (got {self.ranks})")
        if self.sizes().layers % self.pipeline:
            raise ScheduleError(
                f"--layers must be a multiple of --pipeline (got {self.sizes().layers} layers for {self.pipeline})"
            )
        if (count := self.operations()) > OPERATIONS_MAX:
            raise ScheduleError(f"the program must have at most {OPERATIONS_MAX} operations (this one has {count})")

    def operations(self) -> int:
        """How many operations the program has."""
        layers = self.sizes().layers // self.pipeline
        half_layer = 1 + 4 * (self.tensor - 1) + (self.tensor > 1)  # a calculation, a ring, and its end
        passes = layers * (4 * self.microbatches * half_layer + 4 * (self.data - 1))
        handed_on = 6 * (self.pipeline - 1) * self.microbatches * self.tensor * self.data
        return self.rounds * (self.ranks * passes + handed_on) + (self.rounds - 1) * self.ranks


def program(what: TrainingSchedule, ranks: Iterable[int] = ()) -> Iterator[str]:
    """The lines of the program; `ranks` are all ranks, of a caller that tells how far this is."""
    yield f"num_ranks {what.ranks}"
    for rank in ranks or range(what.ranks):
        yield ""
        yield f"rank {rank} {{"
        yield from Rank(what, rank).lines()
        yield "}"


class Rank:
    """One rank's operations, in the order in which it issues them."""

    def __init__(self, what: TrainingSchedule, rank: int) -> None:
        model = what.sizes()
        self._what = what
        self._layers = model.layers // what.pipeline
        self._tensor, rest = rank % what.tensor, rank // what.tensor
        self._data, self._stage = rest % what.data, rest // what.data
        flops = model.tokens * (2 * model.weights + 4 * model.tokens * model.hidden) / what.tensor
        self._half_layer_ns = round(flops / what.flops * 1e9 / 2)
        self._activation_bytes = model.tokens * model.hidden * ELEMENT_BYTES
        self._gradient_bytes = -(-model.weights // what.tensor) * ELEMENT_BYTES
        self._count = 0
        self._after = ""  # what the next calculation requires
        self._open: list[str] = []  # what the end of the step requires besides

    def lines(self) -> Iterator[str]:
        for number in range(self._what.rounds):
            for forward, microbatch in passes(self._stage, self._what.pipeline, self._what.microbatches):
                last = microbatch == self._what.microbatches - 1
                yield from self._forward() if forward else self._backward(reduce=last)
            if number + 1 < self._what.rounds:
                yield from self._end()

    def _forward(self) -> Iterator[str]:
        if self._stage:
            yield from self._hear(self._at(self._stage - 1), FORWARD_TAG)
        for _ in range(self._layers):
            yield from self._layer(self._half_layer_ns)
        if self._stage + 1 < self._what.pipeline:
            yield from self._tell(self._at(self._stage + 1), FORWARD_TAG)

    def _backward(self, *, reduce: bool) -> Iterator[str]:
        if self._stage + 1 < self._what.pipeline:
            yield from self._hear(self._at(self._stage + 1), BACKWARD_TAG)
        for _ in range(self._layers):
            yield from self._layer(2 * self._half_layer_ns)
            if reduce:
                group = [self._at(self._stage, data) for data in range(self._what.data)]
                ends = yield from self._ring(group, self._data, self._gradient_bytes, DATA_TAG, GRADIENTS)
                self._open += ends
        if self._stage:
            yield from self._tell(self._at(self._stage - 1), BACKWARD_TAG)

    def _layer(self, half_ns: int) -> Iterator[str]:
        """Attention and feed-forward: each is a calculation, and an all-reduce over the ranks that share it."""
        group = [self._rank(tensor, self._data, self._stage) for tensor in range(self._what.tensor)]
        for _ in range(2):
            yield from self._then(f"calc {half_ns} cpu {COMPUTE}")
            ends = yield from self._ring(group, self._tensor, self._activation_bytes, TENSOR_TAG, COMPUTE)
            if ends:
                yield from self._then(f"calc 0 cpu {COMPUTE}", *ends)

    def _ring(
        self, group: list[int], place: int, size: int, tag: int, processor: int
    ) -> Generator[str, None, list[str]]:
        """An all-reduce over a group. Its value are the labels of what must end; none where there is no other rank."""
        steps = 2 * (len(group) - 1)
        right, left = group[(place + 1) % len(group)], group[place - 1]
        chunk = -(-size // len(group))
        before = self._after
        ends: list[str] = []
        for _ in range(steps):
            send, receive = self._label(), self._label()
            yield f"{send}: send {chunk}b to {right} tag {tag} cpu {processor}"
            if before:
                yield f"{send} requires {before}"
            yield f"{receive}: recv {chunk}b from {left} tag {tag}"
            before = receive
            ends.append(send)
        return [*ends, before] if steps else []

    def _hear(self, source: int, tag: int) -> Iterator[str]:
        """A microbatch comes from another stage; later operations wait for it."""
        receive = self._label()
        yield f"{receive}: recv {self._share()}b from {source} tag {tag}"
        yield from self._then(f"calc 0 cpu {COMPUTE}", receive)

    def _tell(self, target: int, tag: int) -> Iterator[str]:
        send = self._label()
        yield f"{send}: send {self._share()}b to {target} tag {tag} cpu {COMPUTE}"
        yield f"{send} requires {self._after}"
        self._open.append(send)

    def _end(self) -> Iterator[str]:
        yield from self._then(f"calc 0 cpu {COMPUTE}", *self._open)
        self._open.clear()

    def _then(self, operation: str, *others: str) -> Iterator[str]:
        """An operation that follows the last one, and others."""
        label = self._label()
        yield f"{label}: {operation}"
        for before in (self._after, *others):
            if before:
                yield f"{label} requires {before}"
        self._after = label

    def _label(self) -> str:
        self._count += 1
        return f"o{self._count}"

    def _share(self) -> int:
        """Bytes of a microbatch's activations that one of the tensor ranks hands on."""
        return -(-self._activation_bytes // self._what.tensor)

    def _at(self, stage: int, data: int | None = None) -> int:
        return self._rank(self._tensor, self._data if data is None else data, stage)

    def _rank(self, tensor: int, data: int, stage: int) -> int:
        return tensor + self._what.tensor * (data + self._what.data * stage)


def passes(stage: int, stages: int, microbatches: int) -> Iterator[tuple[bool, int]]:
    """The passes of a stage in their order, True for forward, with the microbatch of each (1F1B)."""
    ahead = min(microbatches, stages - 1 - stage)
    for microbatch in range(ahead):
        yield True, microbatch
    for microbatch in range(microbatches - ahead):
        yield True, ahead + microbatch
        yield False, microbatch
    for microbatch in range(microbatches - ahead, microbatches):
        yield False, microbatch
