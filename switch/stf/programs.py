"""A program from a file: BMv2 JSON, or P4 source, which our compiler turns into it."""

import importlib
import json
from pathlib import Path

from p4c.model import ModelError, Program, load
from switch.engine import Engine
from switch.reference import ReferenceEngine, Trace

ENGINES = ("reference", "native")


def read_program(path: Path) -> Program:
    """Read and, if need be, compile. Raises ModelError for a file that is no program, and the compiler's own errors."""
    if path.suffix != ".p4":
        return load(path)
    try:
        compiler = importlib.import_module("p4c.frontend.compiler")
    except ModuleNotFoundError as error:
        raise ModelError(f"{path}: the compiler is not installed; give the BMv2 JSON of the program instead") from error
    compiled = compiler.compile_program(path)
    return load(compiled.json if isinstance(compiled.json, dict) else json.loads(compiled.json))


def make_engine(name: str, seed: int = 0, trace: Trace | None = None) -> Engine:
    if name == "native":
        native = importlib.import_module("switch.native.engine")
        engine: Engine = native.NativeEngine(seed=seed)
        return engine
    return ReferenceEngine(seed=seed, trace=trace)
