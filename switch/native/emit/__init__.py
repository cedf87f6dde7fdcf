"""C for a P4 program: `emit(program)` returns the text of one C file."""

from switch.native.emit.program import emit

__all__ = ["emit"]
