"""Register arrays: the state that a program itself reads and writes, in expressions too."""

from common.records import Frozen
from p4c.model.source import SourceInfo


class Register(Frozen, eq=False):
    """`size` cells of `width_bits` each."""

    name: str
    index: int
    size: int
    width_bits: int
    source: SourceInfo | None = None
    notation = "{0.name}"
