"""numpy, imported when the first number is asked for: naming the scenarios asks for none, and it takes 0.1 s."""

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["Floats", "np"]

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Bools = npt.NDArray[np.bool_]
    Places = npt.NDArray[np.int64]
else:
    Floats = Bools = Places = Any

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module("numpy"), name)

    np = _Numpy()
