"""Pipelines that are saved and not yet committed (specification, "SetForwardingPipelineConfig", VERIFY_AND_SAVE)."""

from collections.abc import Callable, Iterable
from typing import Any

from switch.engine import Engine, EngineControl
from switch.p4rt.batch import BatchError, write, write_updates
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import exhausted
from switch.p4rt.pipeline import ForwardingPipeline
from switch.p4rt.store import CELLS_COPIED_MAX, EntityStore


class SavedPipeline:
    """Writes change `store`, on an engine that forwards nothing, and are kept to be made again when it is committed."""

    def __init__(self, pipeline: ForwardingPipeline, engine: Engine) -> None:
        """RESOURCE_EXHAUSTED for a program whose arrays are too large to be kept twice."""
        info = pipeline.p4info
        arrays = (*info.registers.values(), *info.counters.values(), *info.meters.values())
        if (cells := sum(array.size for array in arrays)) > CELLS_COPIED_MAX:
            raise exhausted(f"a saved pipeline must have at most {CELLS_COPIED_MAX} cells of arrays (got {cells})")
        self.pipeline = pipeline
        engine.load(pipeline.program)
        self.store = EntityStore(pipeline, engine)
        self._updates: list[bytes] = []  # serialised: parsed, they would take thirty times as much
        self._bytes = 0

    def write(self, request: Any) -> None:
        """As `batch.write`. RESOURCE_EXHAUSTED beyond the longest message that the program has use for."""
        size, most = request.ByteSize(), self.pipeline.message_bytes_max
        if self._bytes + size > most:
            raise exhausted(f"writes to a saved pipeline must have at most {most} bytes together; commit it first")
        try:
            write(self.store, request)
        except BatchError as error:
            self._keep(u for u, failed in zip(request.updates, error.errors, strict=True) if failed is None)
            raise
        self._keep(request.updates)

    def _keep(self, done: Iterable[Any]) -> None:
        for update in done:
            self._updates.append(update.SerializeToString())
            self._bytes += len(self._updates[-1])

    def load(self, engine: EngineControl, now_ns: Callable[[], int]) -> EntityStore:
        """The store of an engine that runs the pipeline from now on, still without the writes."""
        store = EntityStore(self.pipeline, engine, now_ns)
        engine.load(self.pipeline.program)
        return store

    def write_again(self, store: EntityStore) -> None:
        """Make all writes on another engine. Raises BatchError when any fails there."""
        write_updates(store, map(p4rt.Update.FromString, self._updates))
