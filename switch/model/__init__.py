"""A typed, immutable model of BMv2 JSON, which a compiler emits and an engine executes.

`load(path or dict)` and `load_program(bytes)` return a `Program` or raise `ModelError`; `document(program)` is the JSON
of a program. Truth: docs/JSON_format.md and the sources of p4lang/behavioral-model, version 2.24 of the format.
"""

from switch.model.errors import ModelError, UnsupportedError
from switch.model.loading.loader import load, load_program
from switch.model.program import Program
from switch.model.writing.document import document

__all__ = ["ModelError", "Program", "UnsupportedError", "document", "load", "load_program"]
