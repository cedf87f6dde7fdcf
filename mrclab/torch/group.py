"""The process group of backend `mrc`: PyTorch's collectives of CPU tensors over MRC.

It is a subclass of `ProcessGroup`, which PyTorch has taken from Python since 1.13; newer releases call some methods by
other names, which stand beside the older ones.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import wraps
from typing import Any

import torch
import torch.distributed as dist

from mrclab.errors import JobFailedError
from mrclab.mesh.engine import Scope
from mrclab.mesh.joining import join
from mrclab.mesh.mesh import Step
from mrclab.torch import collectives, nic
from mrclab.torch.collectives import Team, Tensor
from mrclab.torch.reduction import reduction
from mrclab.torch.work import Work

_numbers = itertools.count()


def _collective(method: Callable[..., Work]) -> Callable[..., Work]:
    """A call that is refused here has its number as any other, and the other ranks are told."""

    @wraps(method)
    def counted(group: MrcProcessGroup, *arguments: Any, **options: Any) -> Work:
        before = group._sequence
        try:
            return method(group, *arguments, **options)
        except Exception as error:
            if group._sequence == before:
                group._sequence += 1
                with suppress(JobFailedError):  # the others learn it from the queue pairs
                    group._engine.give_up(group._scope(), str(error))
            raise

    return counted


class MrcProcessGroup(dist.ProcessGroup):
    """The ranks of one group. `store` is the group's own; every rank has to make its group at the same time."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._timeout_s = timeout.total_seconds()
        self._sequence = 0
        self._messages: Counter[tuple[str, int, int]] = Counter()
        me = int(os.environ.get("RANK", rank))
        nic.context()
        self._engine = nic.engine(me)
        self._team = self._join(store, me, rank, size)

    def _join(self, store: Any, me: int, rank: int, size: int) -> Team:
        """Meet the other ranks in the store, and link up with those that no earlier group has linked."""
        mesh = self._engine.mesh
        device = self._engine.call(mesh.context.query_device)
        figures = device.base_rtt_ns / 1e9, sum(port.rate_bps for port in device.ports) / 8
        about = {"rank": me, "number": me << 16 | next(_numbers), "figures": figures}
        abouts = join(self._engine, store, rank, size, about)
        ranks = tuple(int(other["rank"]) for other in abouts)
        return Team(mesh, abouts[0]["number"], rank, ranks, *abouts[0]["figures"])

    # --- what every collective does --------------------------------------------------------------------------------

    def _begin(self, name: str, step: Callable[[int], Step], result: Any) -> Work:
        self._sequence += 1
        return Work(self._engine, name, step(self._sequence), result, self._timeout_s, self._scope())

    def _scope(self) -> Scope:
        return Scope((self._team.number, self._sequence), self._team.ranks)

    def _point(self, name: str, peer: int, tag: int, step: Callable[[int], Step], result: Any) -> Work:
        """A message from one rank to another, counted per peer and tag."""
        _rule("peer", peer, peer != self.rank(), "must be another rank")
        _rule("tag", tag, 0 <= tag < 1 << 31, "must be from 0 to 2^31 - 1")
        key = (name, peer, tag)
        self._messages[key] += 1
        return Work(self._engine, f"{name} of rank {peer}", step(self._messages[key]), result, self._timeout_s)

    def _per_rank(self, name: str, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        _rule(name, len(tensors), len(tensors) == self.size(), f"must be a list of {self.size()} tensors, one per rank")
        return tensors

    # --- collectives -----------------------------------------------------------------------------------------------

    def allreduce(self, tensors: Sequence[Tensor], opts: Any = None) -> Work:
        return self.allreduce_coalesced(tensors, opts)

    @_collective
    def allreduce_coalesced(self, tensors: Sequence[Tensor], opts: Any = None) -> Work:
        buffers = [Buffer(tensor) for tensor in tensors]
        combines = [reduction(_op(opts), tensor.dtype, self.size()) for tensor in tensors]

        def step(sequence: int) -> Step:
            for part, (buffer, combine) in enumerate(zip(buffers, combines, strict=True)):
                yield from collectives.all_reduce(self._team, sequence << 16 | part, buffer.flat, combine.into)
                combine.end(buffer.flat)
                buffer.store()

        return self._begin("all-reduce", step, list(tensors))

    @_collective
    def reduce(self, tensors: Sequence[Tensor], opts: Any) -> Work:
        (tensor,) = tensors
        buffer, combine = (
            Buffer(tensor, copy=self.rank() != opts.rootRank),
            reduction(_op(opts), tensor.dtype, self.size()),
        )

        def step(sequence: int) -> Step:
            yield from collectives.tree_reduce(self._team, sequence << 16, buffer.flat, opts.rootRank, combine.into)
            if self.rank() == opts.rootRank:
                combine.end(buffer.flat)
                buffer.store()

        return self._begin("reduce", step, list(tensors))

    @_collective
    def broadcast(self, tensors: Sequence[Tensor], opts: Any) -> Work:
        buffers = [Buffer(tensor) for tensor in tensors]

        def step(sequence: int) -> Step:
            for part, buffer in enumerate(buffers):
                yield from collectives.broadcast(self._team, sequence << 16 | part, buffer.flat, opts.rootRank)
                buffer.store()

        return self._begin("broadcast", step, list(tensors))

    @_collective
    def allgather(self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None) -> Work:
        _rule("outputs", len(outputs), len(outputs) == len(inputs), f"must be lists for {len(inputs)} inputs")
        buffers = [[Buffer(tensor) for tensor in self._per_rank("outputs", places)] for places in outputs]
        own = [Buffer(tensor).flat for tensor in inputs]
        for places, tensor in zip(outputs, inputs, strict=True):
            _alike("output", places[self.rank()], tensor)

        def step(sequence: int) -> Step:
            for part, (places, mine) in enumerate(zip(buffers, own, strict=True)):
                places[self.rank()].flat.copy_(mine)
                flats = [place.flat for place in places]
                yield from collectives.ring_gather(self._team, sequence << 16 | part, flats)
                for place in places:
                    place.store()

        return self._begin("all-gather", step, list(outputs))

    @_collective
    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """`outputs` has a list per rank here, where `allgather` has a list per tensor."""
        return self.allgather([list(places) for places in zip(*outputs, strict=True)], inputs, opts)

    def _allgather_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        return self.allgather_into_tensor_coalesced([output], [input], opts)

    @_collective
    def allgather_into_tensor_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        buffers = [Buffer(tensor) for tensor in outputs]
        own = [Buffer(tensor).flat for tensor in inputs]
        for buffer, mine in zip(buffers, own, strict=True):
            _alike("output", buffer.flat, mine, self.size())

        def step(sequence: int) -> Step:
            for part, (buffer, mine) in enumerate(zip(buffers, own, strict=True)):
                places = collectives.pieces(buffer.flat, self.size())
                places[self.rank()].copy_(mine)
                yield from collectives.ring_gather(self._team, sequence << 16 | part, places)
                buffer.store()

        return self._begin("all-gather", step, list(outputs))

    @_collective
    def reduce_scatter(self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any = None) -> Work:
        for place, parts in zip(outputs, inputs, strict=True):
            _alike("input", self._per_rank("inputs", parts)[self.rank()], place)
        copies = [[Buffer(tensor, copy=True).flat for tensor in parts] for parts in inputs]
        return self._reduce_scatter(outputs, copies, opts)

    def _reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        return self.reduce_scatter_tensor_coalesced([output], [input], opts)

    @_collective
    def reduce_scatter_tensor_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        for place, tensor in zip(outputs, inputs, strict=True):
            _alike("input", tensor, place, self.size())
        copies = [collectives.pieces(Buffer(tensor, copy=True).flat, self.size()) for tensor in inputs]
        return self._reduce_scatter(outputs, copies, opts)

    def _reduce_scatter(self, outputs: Sequence[Tensor], copies: Sequence[Sequence[Tensor]], opts: Any) -> Work:
        buffers = [Buffer(tensor) for tensor in outputs]
        combines = [reduction(_op(opts), tensor.dtype, self.size()) for tensor in outputs]

        def step(sequence: int) -> Step:
            for part, (buffer, parts, combine) in enumerate(zip(buffers, copies, combines, strict=True)):
                yield from collectives.ring_reduce(self._team, sequence << 16 | part, parts, combine.into)
                buffer.flat.copy_(parts[self.rank()])
                combine.end(buffer.flat)
                buffer.store()

        return self._begin("reduce-scatter", step, list(outputs))

    @_collective
    def alltoall(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None) -> Work:
        buffers = [Buffer(tensor) for tensor in self._per_rank("outputs", outputs)]
        outgoing = [Buffer(tensor).flat for tensor in self._per_rank("inputs", inputs)]
        _alike("output", outputs[self.rank()], inputs[self.rank()])

        def step(sequence: int) -> Step:
            yield from collectives.exchange(self._team, sequence << 16, outgoing, [buffer.flat for buffer in buffers])
            for buffer in buffers:
                buffer.store()

        return self._begin("all-to-all", step, list(outputs))

    @_collective
    def alltoall_base(
        self, output: Tensor, input: Tensor, output_sizes: Sequence[int], input_sizes: Sequence[int], opts: Any = None
    ) -> Work:
        buffer = Buffer(output)
        incoming = _split("output", output, buffer.flat, output_sizes, self.size())
        parts = _split("input", input, Buffer(input).flat, input_sizes, self.size())
        _alike("output", incoming[self.rank()], parts[self.rank()])

        def step(sequence: int) -> Step:
            yield from collectives.exchange(self._team, sequence << 16, parts, incoming)
            buffer.store()

        return self._begin("all-to-all", step, [output])

    @_collective
    def gather(self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any) -> Work:
        (tensor,) = inputs
        data, places = Buffer(tensor).flat, None
        if self.rank() == opts.rootRank:
            places = [Buffer(place) for place in self._per_rank("outputs", outputs[0] if outputs else [])]
            for place in outputs[0]:
                _alike("output", place, tensor)

        def step(sequence: int) -> Step:
            flats = None if places is None else [place.flat for place in places]
            yield from collectives.gather(self._team, sequence << 16, data, flats, opts.rootRank)
            for place in places or ():
                place.store()

        return self._begin("gather", step, list(outputs))

    @_collective
    def scatter(self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any) -> Work:
        (tensor,) = outputs
        buffer = Buffer(tensor)
        parts = None
        if self.rank() == opts.rootRank:
            parts = [Buffer(part).flat for part in self._per_rank("inputs", inputs[0] if inputs else [])]
            for part in inputs[0]:
                _alike("input", part, tensor)

        def step(sequence: int) -> Step:
            yield from collectives.scatter(self._team, sequence << 16, buffer.flat, parts, opts.rootRank)
            buffer.store()

        return self._begin("scatter", step, list(outputs))

    def barrier(self, opts: Any = None) -> Work:
        return self._begin("barrier", lambda sequence: collectives.barrier(self._team, sequence << 16), [])

    # --- messages --------------------------------------------------------------------------------------------------

    def send(self, tensors: Sequence[Tensor], dstRank: int, tag: int = 0) -> Work:  # noqa: N803 (PyTorch's name)
        (tensor,) = tensors
        flat = Buffer(tensor).flat
        return self._point(
            "send", dstRank, tag, lambda count: collectives.send(self._team, dstRank, count, tag, flat), list(tensors)
        )

    def recv(self, tensors: Sequence[Tensor], srcRank: int, tag: int = 0) -> Work:  # noqa: N803 (PyTorch's name)
        (tensor,) = tensors
        buffer = Buffer(tensor)

        def step(count: int) -> Step:
            yield from collectives.receive(self._team, srcRank, count, tag, buffer.flat)
            buffer.store()

        return self._point("recv", srcRank, tag, step, list(tensors))

    def recv_anysource(self, tensors: Sequence[Tensor], tag: int = 0) -> Work:
        raise NotImplementedError("backend mrc: recv must name its source rank; messages from any rank are not offered")

    # --- names of newer releases -----------------------------------------------------------------------------------

    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base

    def getBackendName(self) -> str:  # noqa: N802 (PyTorch's name)
        return "mrc"

    def getGroupName(self) -> str:  # noqa: N802
        return self._group_name

    def setGroupName(self, name: str) -> None:  # noqa: N802
        self._group_name = name

    _group_name = ""


class Buffer:
    """A tensor as contiguous flat memory: its own where it is contiguous, else a copy that `store` writes back."""

    def __init__(self, tensor: Tensor, copy: bool = False) -> None:
        _rule("tensor", tensor.device, tensor.device.type == "cpu", "must be on the CPU")
        _rule("tensor", tensor.layout, tensor.layout == torch.strided, "must be dense")
        self._tensor = tensor.detach()
        # A single item counts as contiguous with any stride, but cannot be viewed as bytes then.
        self._own = tensor.is_contiguous() and tensor.numel() > 1 and not copy
        self.flat = (self._tensor if self._own else self._tensor.clone(memory_format=torch.contiguous_format)).reshape(
            -1
        )

    def store(self) -> None:
        """Write a copy back; the tensor's own memory has the result already."""
        if self._own:
            return
        place, source = self._tensor, self.flat.view(self._tensor.shape)
        for dim, stride in enumerate(place.stride()):
            if not stride and place.shape[dim]:  # expanded: all items along it are one, and the last is written
                place, source = place.narrow(dim, 0, 1), source.narrow(dim, place.shape[dim] - 1, 1)
        place.copy_(source)


def _split(name: str, tensor: Tensor, flat: Tensor, sizes: Sequence[int], count: int) -> list[Tensor]:
    """The pieces per rank of an all-to-all: `sizes` count rows of the first dimension; none: all alike."""
    _rule(f"{name}'s shape", tuple(tensor.shape), tensor.dim() > 0, "must have a first dimension to be split")
    length = tensor.shape[0]
    row = flat.numel() // length if length else 0
    if sizes:
        _rule(f"{name} split sizes", list(sizes), len(sizes) == count, f"must be {count}, one per rank")
    else:
        _rule(f"{name}'s first dimension", length, length % count == 0, f"must divide by {count} ranks")
    rows = list(sizes) or [length // count] * count
    _rule(f"{name} split sizes", rows, sum(rows) == length and min(rows) >= 0, f"must add up to {length}")
    return list(torch.split(flat, [size * row for size in rows]))


def _alike(name: str, tensor: Tensor, other: Tensor, times: int = 1) -> None:
    """Raises ValueError unless a tensor has the dtype of another, and `times` its items."""
    actual, right = (tensor.numel(), tensor.dtype), (other.numel() * times, other.dtype)
    _rule(name, f"{actual[0]} of {actual[1]}", actual == right, f"must have {right[0]} items of {right[1]}")


def _op(opts: Any) -> Any:
    return dist.ReduceOp.SUM if opts is None else opts.reduceOp


def _rule(name: str, value: Any, holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(f"backend mrc: {name} {rule} (got {value})")
