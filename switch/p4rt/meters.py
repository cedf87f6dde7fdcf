"""MeterEntry and DirectMeterEntry (specification, "MeterEntry & DirectMeterEntry").

The engine's meter is the two-rate three-colour marker (RFC 2698); a single-rate two-colour marker is one whose two
rates and bursts are equal. Meter state is write-only in the engine, so reads answer with what the client wrote.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from switch.engine import MeterConfig
from switch.p4rt import resources, wire
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import invalid, unimplemented
from switch.p4rt.p4info import find
from switch.p4rt.store import EntityStore

_ENTITY = wire.tag(p4rt.Entity, "meter_entry")
_METER_ID, _INDEX, _CONFIG = wire.tags(p4rt.MeterEntry, "meter_id", "index", "config")
_DIRECT_ENTITY = wire.tag(p4rt.Entity, "direct_meter_entry")
_DIRECT_CONFIG = wire.tag(p4rt.DirectMeterEntry, "config")


def decode_meter_config(owner: str, message: Any) -> MeterConfig:
    """Rates in the meter's own unit a second, bursts in that unit. Raises P4RuntimeError."""
    values = {name: getattr(message, name) for name in ("cir", "cburst", "pir", "pburst", "eburst")}
    for name, value in values.items():
        if value < 0:
            raise invalid(f"{owner}: meter config: {name} must not be negative, is {value}")
    if values["eburst"]:
        raise unimplemented(
            f"{owner}: meter config: eburst is for single-rate three-colour meters, which are not supported; "
            "give cir, cburst, pir and pburst"
        )
    if values["pir"] < values["cir"]:
        raise invalid(f"{owner}: meter config: pir {values['pir']} must be at least cir {values['cir']}")
    return MeterConfig(values["cir"], values["cburst"], values["pir"], values["pburst"])


def _config(owner: str, message: Any) -> tuple[MeterConfig | None, bytes]:
    """What a meter entry configures, and the same as the client wrote it."""
    if not message.HasField("config"):
        return None, b""
    return decode_meter_config(owner, message.config), message.config.SerializeToString()


def _refuse_colour_counters(owner: str, message: Any) -> None:
    if message.HasField("counter_data"):
        raise unimplemented(f"{owner}: counters per meter colour are not supported")


@lru_cache(maxsize=1 << 16)
def unconfigured_cell(meter_id: int, index: int) -> bytes:
    """The serialised Entity of a cell without configuration, as most cells of most meters are."""
    return wire.block(_ENTITY, wire.number(_METER_ID, meter_id) + wire.block(_INDEX, resources.index_bytes(index)))


def write(store: EntityStore, kind: int, message: Any) -> None:
    """One update of indirect cells. Raises P4RuntimeError and changes nothing when it is refused."""
    info = store.pipeline.p4info
    meter = find(info.meters, message.meter_id, "meter")
    owner = f"meter {meter.name}"
    resources.only_modify(owner, kind)
    _refuse_colour_counters(owner, message)
    config, encoded = _config(owner, message)
    for index in resources.indices(owner, meter.size, message):
        store.engine.set_meter(meter.name, index, config)
        if config is None:
            store.meters[meter.id].pop(index, None)
        else:
            store.meters[meter.id][index] = (config, encoded)


def read(store: EntityStore, message: Any) -> Iterator[bytes]:
    """Serialised entities of the cells asked for, also of those without configuration."""
    _refuse_colour_counters("meter", message)
    for meter in resources.selected(store.pipeline.p4info.meters, message.meter_id, "meter", message):
        configs = store.meters[meter.id]
        for index in resources.indices(f"meter {meter.name}", meter.size, message):
            written = configs.get(index)
            if written is None:
                yield unconfigured_cell(meter.id, index)
            else:
                head = wire.number(_METER_ID, meter.id) + wire.block(_INDEX, resources.index_bytes(index))
                yield wire.block(_ENTITY, head + wire.block(_CONFIG, written[1]))


def write_direct(store: EntityStore, kind: int, message: Any) -> None:
    """One update of an entry's meter. Raises P4RuntimeError and changes nothing when it is refused."""
    table, row = resources.find_direct(store, message.table_entry, "meter")
    owner = f"direct meter {table.direct_meter}"
    resources.only_modify(owner, kind)
    _refuse_colour_counters(owner, message)
    config, encoded = _config(owner, message)
    assert row.handle is not None
    store.engine.set_direct_meter(table.name, row.handle, config)
    row.meter, row.meter_bytes = config, encoded


def read_direct(store: EntityStore, message: Any) -> Iterator[bytes]:
    """Serialised entities of the entries asked for; without `config` where none was written."""
    _refuse_colour_counters("direct meter", message)
    for _, row, head in resources.select_direct(store, message, "meter"):
        yield wire.block(
            _DIRECT_ENTITY, head + (wire.block(_DIRECT_CONFIG, row.meter_bytes) if row.meter is not None else b"")
        )
