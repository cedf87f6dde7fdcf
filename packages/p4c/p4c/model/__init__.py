"""A typed, immutable model of BMv2 JSON, which a compiler emits and an engine executes.

`load(path or dict)` and `load_program(bytes)` return a `Program` or raise `ModelError`; `document(program)` is the JSON
of a program. Truth: docs/JSON_format.md and the sources of p4lang/behavioral-model, version 2.24 of the format.
"""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from p4c.model.actions import Action, Primitive, Vector
    from p4c.model.errors import ModelError, UnsupportedError
    from p4c.model.headers import Field, Header, HeaderType, Stack, Union, UnionStack
    from p4c.model.loading.loader import load, load_program
    from p4c.model.program import Program
    from p4c.model.registers import Register
    from p4c.model.writing.document import document
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "Action", "Field", "Header", "HeaderType", "ModelError", "Primitive", "Program", "Register", "Stack", "Union",
    "UnionStack", "UnsupportedError", "Vector", "document", "expressions", "externs", "intrinsics", "limits", "load",
    "load_program", "memory", "parsers", "pipelines",
]  # fmt: skip
