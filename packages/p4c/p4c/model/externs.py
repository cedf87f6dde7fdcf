"""Counters, meters, calculations, checksums and field lists."""

from common.records import Frozen
from p4c.model.expressions import Expression, FieldRef
from p4c.model.headers import Header
from p4c.model.source import SourceInfo

__all__ = [
    "Calculation", "Checksum", "ConstInput", "Counter", "FieldInput", "FieldList", "HeaderInput", "LearnList", "Meter",
    "PayloadInput",
]  # fmt: skip

HASH_ALGORITHMS = (
    "crc16",
    "crc16_custom",  # the custom ones with their default parameters, which P4Runtime cannot change
    "crc32",
    "crc32_custom",
    "crcCCITT",
    "csum16",
    "cksum16",
    "identity",
    "xor16",
    "xor32",
)


class Counter(Frozen, eq=False):
    """Counts packets and bytes. A direct counter has one cell per entry of `table`, and size 0."""

    name: str
    index: int
    size: int
    table: str | None = None  # direct: the table that it belongs to; "" where no table has taken it
    source: SourceInfo | None = None
    notation = "{0.name}"

    @property
    def direct(self) -> bool:
        return self.table is not None


class Meter(Frozen, eq=False):
    """A two-rate three-colour marker: GREEN 0, YELLOW 1, RED 2."""

    name: str
    index: int
    size: int  # of a direct meter: of its table
    bytes: bool  # counts bytes, else packets
    table: str | None = None  # direct: the table that it belongs to; "" where no table has taken it
    result: FieldRef | None = None  # direct: the field that takes the colour on a hit, before the action
    source: SourceInfo | None = None
    notation = "{0.name}"

    @property
    def direct(self) -> bool:
        return self.table is not None


class FieldInput(Frozen):
    """A field as input of a calculation."""

    field: FieldRef  # left out while its header is invalid


class ConstInput(Frozen):
    """A constant of `width_bits` bits as input of a calculation."""

    value: int
    width_bits: int


class HeaderInput(Frozen):
    """A whole header as input of a calculation, if it is valid."""

    header: Header


class PayloadInput(Frozen):
    """Everything after the parsed headers; always the last of the inputs, from any place in the list."""


CalculationInput = FieldInput | ConstInput | HeaderInput | PayloadInput


class Calculation(Frozen, eq=False):
    """A hash or checksum over its inputs, concatenated bit by bit and padded with zero bits to whole bytes."""

    name: str
    index: int
    algorithm: str  # one of HASH_ALGORITHMS
    inputs: tuple[CalculationInput, ...]
    source: SourceInfo | None = None
    notation = "{0.name}"


class Checksum(Frozen, eq=False):
    """Verified after parsing, updated before deparsing, where `condition` (if any) holds."""

    name: str
    target: FieldRef
    calculation: Calculation
    condition: Expression | None
    verify: bool
    update: bool
    source: SourceInfo | None = None


class FieldList(Frozen, eq=False):
    """Metadata that survives clone, resubmit or recirculate."""

    name: str
    id: int
    fields: tuple[FieldRef, ...]
    notation = "{0.name}"


class LearnList(Frozen, eq=False):
    """The data of a digest, field after field. Lists of one name are one digest, asked for in several places."""

    name: str
    id: int
    items: tuple[FieldInput | ConstInput, ...]
    notation = "{0.name}"

    @property
    def widths(self) -> tuple[int, ...]:
        """The bits of each item; a digest is these one behind the other, with zeros up to a whole byte."""
        return tuple(i.field.field.width_bits if isinstance(i, FieldInput) else i.width_bits for i in self.items)
