"""A typed, immutable model of BMv2 JSON, which a compiler emits and an engine executes.

`load(path or dict)` and `load_program(bytes)` return a `Program` or raise `ModelError`; `document(program)` is the JSON
of a program. Truth: docs/JSON_format.md and the sources of p4lang/behavioral-model, version 2.24 of the format.
"""

from p4c.model.errors import ModelError, UnsupportedError
from p4c.model.loading.loader import load, load_program
from p4c.model.program import Program
from p4c.model.writing.document import document

__all__ = ["ModelError", "Program", "UnsupportedError", "document", "load", "load_program"]
