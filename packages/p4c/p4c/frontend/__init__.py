"""The P4 compiler: P4_16 for v1model to BMv2 JSON and P4Info. See README.md; use `compile_program`."""

from p4c.frontend.cache import Compiled
from p4c.frontend.compiler import compile_program
from p4c.frontend.diagnostics import CompileError, Diagnostic

__all__ = ["CompileError", "Compiled", "Diagnostic", "compile_program"]
