"""The native data plane: C emitted for a program, a small C runtime, and the thread that drives it over interfaces."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from switch.native.binding import NEVER, load_program
    from switch.native.build import RUNTIME, EngineBuildError, build_runtime, compiler
    from switch.native.dataplane import NativeDataPlane
    from switch.native.engine import NativeEngine
    from switch.native.fabric import NativeFabric
    from switch.native.part import FabricPart
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "NEVER", "RUNTIME", "EngineBuildError", "FabricPart", "NativeDataPlane", "NativeEngine", "NativeFabric",
    "build_runtime", "compiler", "load_program",
]  # fmt: skip
