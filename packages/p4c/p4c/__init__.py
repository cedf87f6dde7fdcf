"""A P4_16 compiler for v1model, and the model of its programs, which the switch executes."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from p4c.frontend.compilation import Compilation
    from p4c.frontend.compiler import compile_program
    from p4c.frontend.diagnostics import CompileError, Diagnostics
    from p4c.frontend.parse.lexer import tokenize
    from p4c.frontend.parse.preprocessor import STANDARD_INCLUDE
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "STANDARD_INCLUDE", "Compilation", "CompileError", "Diagnostics", "compile_program", "entries", "model", "tokenize",
]  # fmt: skip
