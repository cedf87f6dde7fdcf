"""Entries into an engine of this process, without gRPC: how the simulated world is provisioned.

The very same bytes pass through the very same checks as over P4Runtime; only the wire is missing.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from controller.entries import Entity
from controller.items import INSERTED, WRITE_ORDER, Item, encode
from controller.pipelines import PipelineConfig
from p4c.model import load_program
from switch import EngineControl
from switch.p4rt import EntityStore, batch
from switch.p4rt import ForwardingPipeline as LoadedPipeline
from switch.p4rt import p4runtime_pb2 as p4rt

INSERT, MODIFY, DELETE = p4rt.Update.INSERT, p4rt.Update.MODIFY, p4rt.Update.DELETE

TableItems = Mapping[tuple[str, bytes], Item]
"""The items that a switch should have, by kind and key, in an order in which they can be written."""


class DirectControl:
    """One engine under control: `install` brings it to a list of entities, again and again.

    The engine loads the pipeline's program and so starts empty. Raises P4RuntimeError, BatchError.
    """

    def __init__(self, engine: EngineControl, pipeline: PipelineConfig) -> None:
        self._pipeline = pipeline
        self._installed: TableItems = {}
        loaded = _loaded(pipeline)
        engine.load(loaded.program)
        self.store = EntityStore(loaded, engine)

    def install(self, entities: Iterable[Entity]) -> int:
        """Add missing entities, correct wrong ones, delete surplus ones; the number of updates.

        Default actions and meters are never taken back.
        """
        return self.write(encoded(self._pipeline, entities))

    def write(self, wanted: TableItems) -> int:
        """The same with entities that are encoded already; `wanted` is kept and must not be changed afterwards."""
        if wanted is self._installed:
            return 0
        updates: list[tuple[int, Item]] = []
        for kind in WRITE_ORDER:
            for key, item in wanted.items():
                if item.kind == kind and self._installed.get(key) != item:
                    fresh = kind in INSERTED and key not in self._installed
                    updates.append((INSERT if fresh else MODIFY, item))
        for kind in reversed(WRITE_ORDER):
            gone = [i for k, i in self._installed.items() if i.kind == kind and k not in wanted and kind in INSERTED]
            updates += [(DELETE, item) for item in gone]
        batch.write_updates(self.store, (_update(update_type, item.body) for update_type, item in updates))
        self._installed = wanted
        return len(updates)


def encoded(pipeline: PipelineConfig, entities: Iterable[Entity]) -> TableItems:
    """The entities as bytes. Raises P4RuntimeError."""
    return {(item.kind, item.key): item for item in (_encoded(pipeline, entity) for entity in entities)}


@lru_cache(maxsize=8)
def _loaded(pipeline: PipelineConfig) -> LoadedPipeline:
    """The program, read once for all engines that run it."""
    return LoadedPipeline(
        pipeline.p4info,
        load_program(pipeline.device_config),
        pipeline.p4info.message.SerializeToString(),
        pipeline.device_config,
    )


@lru_cache(maxsize=65536)
def _encoded(pipeline: PipelineConfig, entity: Entity) -> Item:
    """The entity as bytes, made once for all switches of one role and for all runs of a process."""
    return encode(pipeline.p4info, entity)


@lru_cache(maxsize=65536)
def _update(update_type: int, body: bytes) -> Any:
    """A p4.v1.Update, shared by switches of one role, which have most entries in common: it must not be changed."""
    update = p4rt.Update(type=update_type)
    update.entity.MergeFromString(body)
    return update
