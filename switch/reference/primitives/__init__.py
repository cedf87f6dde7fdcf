"""The primitives of simple_switch, compiled to closures (targets/simple_switch/primitives.cpp, bm_sim/core)."""

from switch.reference.primitives import assignment, externs, fate, validity  # noqa: F401 - they register their builders
from switch.reference.primitives.externs import COLOURS
from switch.reference.primitives.registry import compile_primitive

__all__ = ["COLOURS", "compile_primitive"]
