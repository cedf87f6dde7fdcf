"""A forwarding pipeline config (P4Info and BMv2 JSON), read once and shared by every device that runs it."""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from p4c.entries import Exact, Lpm, Optional, Range, Ternary
from switch import rules
from switch.engine import EngineError
from switch.p4rt import wire
from switch.p4rt.bindings import p4runtime_pb2
from switch.p4rt.errors import P4RuntimeError, choices, invalid
from switch.p4rt.limits import FIELDS_MAX, write_bytes_max
from switch.p4rt.p4info import FieldInfo, MatchKind, P4Info, PacketHeader, TableInfo, parse_p4info

if TYPE_CHECKING:
    from p4c.model import Program
    from p4c.model.pipelines import Table

ProgramLoader = Callable[[bytes], "Program"]

_CONFIG = p4runtime_pb2.ForwardingPipelineConfig.DESCRIPTOR.fields_by_name
_P4INFO, _DEVICE_CONFIG, _COOKIE = (_CONFIG[name].number for name in ("p4info", "p4_device_config", "cookie"))
_P4INFO_TAG, _DEVICE_CONFIG_TAG, _COOKIE_TAG = wire.tags(
    p4runtime_pb2.ForwardingPipelineConfig, "p4info", "p4_device_config", "cookie"
)

_MATCHES: dict[MatchKind, type] = {
    MatchKind.EXACT: Exact,
    MatchKind.LPM: Lpm,
    MatchKind.TERNARY: Ternary,
    MatchKind.RANGE: Range,
    MatchKind.OPTIONAL: Optional,
}


class ForwardingPipeline:
    """Immutable. The bytes are what the client sent, to be given back as they were."""

    def __init__(
        self,
        p4info: P4Info,
        program: Program,
        p4info_bytes: bytes = b"",
        device_config: bytes = b"",
        cookie_bytes: bytes | None = None,
    ) -> None:
        self.p4info = p4info
        self.program = program
        self.p4info_bytes = p4info_bytes
        self.device_config = device_config
        self.cookie_bytes = cookie_bytes
        self.message_bytes_max = write_bytes_max(p4info)  # here, since every request asks, and P4Info may be large
        self.program_tables = {table.name: table for table in program.tables}
        self.digest = hashlib.sha256(p4info_bytes + device_config).hexdigest()

    @property
    def name(self) -> str:
        """P4Info's package name, or the digest's beginning: what `devices` shows as the program."""
        return self.p4info.name or self.digest[:12]

    def config_bytes(self, *, p4info: bool, device_config: bool) -> bytes:
        """A serialised ForwardingPipelineConfig with the cookie and the parts asked for."""
        parts = []
        if p4info:
            parts.append(wire.block(_P4INFO_TAG, self.p4info_bytes))
        if device_config and self.device_config:
            parts.append(wire.block(_DEVICE_CONFIG_TAG, self.device_config))
        if self.cookie_bytes is not None:
            parts.append(wire.block(_COOKIE_TAG, self.cookie_bytes))
        return b"".join(parts)


class PipelineCache:
    """Reads configs, each distinct one once as long as a device holds it. Thread-safe."""

    def __init__(self, load_program: ProgramLoader) -> None:
        self._load_program = load_program
        self._lock = threading.Lock()
        self._pipelines: weakref.WeakValueDictionary[bytes, ForwardingPipeline] = weakref.WeakValueDictionary()

    def read(self, config: bytes) -> ForwardingPipeline:
        """From a serialised ForwardingPipelineConfig.

        Raises P4RuntimeError (INVALID_ARGUMENT) when a part is missing or malformed, or they do not fit each other.
        """
        key = hashlib.sha256(config).digest()
        with self._lock:
            pipeline = self._pipelines.get(key)
            if pipeline is None:
                pipeline = self._parse(config)
                if not any(t.strings for t in pipeline.p4info.translations.values()):  # each device has its own names
                    self._pipelines[key] = pipeline
            return pipeline

    def _parse(self, config: bytes) -> ForwardingPipeline:
        parts = {
            number: config[start:end]
            for number, kind, start, end in wire.fields(config, FIELDS_MAX)
            if kind == wire.LENGTH
        }
        if _P4INFO not in parts:
            raise invalid("pipeline config: p4info is missing")
        if _DEVICE_CONFIG not in parts:
            raise invalid("pipeline config: p4_device_config is missing; it must be the program as BMv2 JSON")
        p4info = parse_p4info(parts[_P4INFO])
        try:
            program = self._load_program(_unwrapped(parts[_DEVICE_CONFIG]))
        except ValueError as error:
            raise invalid(f"pipeline config: p4_device_config: {error}") from None
        check_names(p4info, program)
        try:
            for table in program.tables:
                rules.check_initial(table)
        except EngineError as error:
            raise invalid(f"pipeline config: p4_device_config: {error}") from None
        return ForwardingPipeline(p4info, program, parts[_P4INFO], parts[_DEVICE_CONFIG], parts.get(_COOKIE))


def _unwrapped(config: bytes) -> bytes:
    """The program of a p4.tmp.P4DeviceConfig, as p4runtime_lib of p4lang's tutorials sends it; other bytes as they are.

    Its `device_data` has the number 2 or 3, by its version. No JSON is such a message: `{` begins a group of field 15.
    """
    if config.lstrip().startswith(b"{"):
        return config
    try:
        parts = [config[start:end] for _, kind, start, end in wire.fields(config, FIELDS_MAX) if kind == wire.LENGTH]
    except P4RuntimeError:
        return config
    return next((part for part in parts if part.lstrip().startswith(b"{")), config)


def check_names(p4info: P4Info, program: Program) -> None:
    """Every P4Info object must be in the program, alike. Raises P4RuntimeError naming the first that is not."""
    tables = {table.name: table for table in program.tables}
    for table in p4info.tables.values():
        compiled = tables.get(table.name)
        if compiled is None:
            raise invalid(f"pipeline config: P4Info's {table} is not in the program: {choices(tables)}")
        _check_fields(table, compiled)
        _check_actions(table, compiled)
        _check_resources(table, compiled)
    profiles = {profile.name: profile for profile in program.profiles}
    for profile in p4info.profiles.values():
        if _same("action profile", profile.name, profiles).has_groups != profile.selector:
            raise invalid(f"pipeline config: action profile {profile.name} has a selector in one of P4Info and program")
    value_sets = {value_set.name: value_set for value_set in program.value_sets}
    for declared_set in p4info.value_sets.values():
        _same("value set", declared_set.name, value_sets)
    for digest in p4info.digests.values():
        widths = {learned.widths for learned in program.learn_lists if learned.name == digest.name}
        if len(widths) != 1 or not (digest.refused or len(*widths) == digest.values):
            owner = f"pipeline config: digest {digest.name}"
            raise invalid(f"{owner}: its {digest.values} values in P4Info are not those of the program's learn lists")
    counters = {counter.name: counter for counter in program.counters if not counter.direct}
    meters = {meter.name: meter for meter in program.meters if not meter.direct}
    registers = {register.name: register for register in program.registers}
    for kind, declared, arrays in (
        ("counter", p4info.counters, counters),
        ("meter", p4info.meters, meters),
        ("register", p4info.registers, registers),
    ):
        for item in declared.values():
            size = _same(kind, item.name, arrays).size
            if item.size != size:
                raise invalid(
                    f"pipeline config: {kind} {item.name} has {item.size} cells in P4Info and {size} in the program"
                )
    for name in ("packet_in", "packet_out"):
        header = getattr(p4info, name)
        if header is not None and not _widths_known(header, program):
            setattr(p4info, name, None)  # packets have no metadata then
    for item in p4info.registers.values():
        width = registers[item.name].width_bits
        if item.bits not in (0, width):  # 0: of another type, which can be neither read nor written
            raise invalid(
                f"pipeline config: register {item.name} is bit<{item.bits}> in P4Info and bit<{width}> in the program"
            )


def _same(kind: str, name: str, existing: dict[str, Any]) -> Any:
    """The program's object with the name of one of P4Info."""
    if name not in existing:
        raise invalid(f"pipeline config: P4Info's {kind} {name} is not in the program: {choices(existing)}")
    return existing[name]


def _fits(field: FieldInfo, width: int) -> bool:
    """Whether a field or parameter is so wide in the program; only that tells the width of a translated type."""
    if field.translation is None:
        return field.bits == width
    field.translation.bits = field.translation.bits or width
    return field.translation.bits == width


def _widths_known(header: PacketHeader, program: Program) -> bool:
    """Whether the width of each field is known. A type that no table has gets its width from the program's header with
    the same fields, because JSON has no annotations. SAI P4 has such a header in the variant for BMv2 only."""
    names = [field.name for field in header.fields]
    for held in program.header_types if not all(field.width for field in header.fields) else ():
        if [field.name for field in held.fields] == names:
            for field, same in zip(header.fields, held.fields, strict=True):
                _fits(field, same.width_bits)
    return all(field.width for field in header.fields)


def _check_fields(table: TableInfo, compiled: Table) -> None:
    if len(compiled.keys) != len(table.fields):
        raise invalid(
            f"pipeline config: {table} has {len(table.fields)} match fields in P4Info "
            f"and {len(compiled.keys)} in the program"
        )
    for field, key in zip(table.fields, compiled.keys, strict=True):
        if not _fits(field, key.width_bits):
            raise invalid(f"pipeline config: {table}: field {field} is bit<{key.width_bits}> in the program")
        assert field.kind is not None
        if _MATCHES[field.kind] not in rules.ACCEPTED[key.match]:
            raise invalid(f"pipeline config: {table}: field {field} is {key.match} in the program")


def _check_actions(table: TableInfo, compiled: Table) -> None:
    actions = {action.name: action for action in compiled.actions}
    for action in table.actions.values():
        if action.name not in actions:
            raise invalid(
                f"pipeline config: {table}: action {action.name} of P4Info is not in the program: {choices(actions)}"
            )
        widths = [parameter.width_bits for parameter in actions[action.name].parameters]
        if len(widths) != len(action.params) or not all(map(_fits, action.params, widths)):
            raise invalid(f"pipeline config: action {action} has parameters of {widths} bits in the program")


def _check_resources(table: TableInfo, compiled: Table) -> None:
    declared, existing = (profile.name if profile else "none" for profile in (table.profile, compiled.profile))
    if declared != existing:
        raise invalid(
            f"pipeline config: {table}: its action profile is {declared} in P4Info and {existing} in the program"
        )
    for kind, name, resource in (
        ("counter", table.direct_counter, compiled.counter),
        ("meter", table.direct_meter, compiled.meter),
    ):
        if name is not None and resource is None:
            raise invalid(f"pipeline config: {table}: its direct {kind} {name} of P4Info is not in the program")
