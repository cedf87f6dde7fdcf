"""A data set of small pictures, made from a seed: ten shapes, each drawn with shifts and noise."""

from typing import Any

import numpy as np

from common.seeds import Purpose, derive

Floats = np.ndarray[Any, np.dtype[np.float32]]
Labels = np.ndarray[Any, np.dtype[np.int64]]

SIDE = 8
CLASSES = 10
_NOISE = 0.6
_SHIFT = 1


def make(seed: int, count: int) -> tuple[Floats, Labels]:
    """`count` pictures of SIDE × SIDE values in a row each, and which of the CLASSES shapes each shows."""
    generator = np.random.default_rng(int(derive(seed, Purpose.PICTURES)))
    shapes = generator.standard_normal((CLASSES, SIDE, SIDE))
    shapes = shapes + np.roll(shapes, 1, axis=1) + np.roll(shapes, 1, axis=2)  # neighbours are alike
    labels = generator.integers(0, CLASSES, count)
    shifts = generator.integers(-_SHIFT, _SHIFT + 1, (count, 2))
    pictures = np.stack(
        [np.roll(shapes[label], tuple(shift), axis=(0, 1)) for label, shift in zip(labels, shifts, strict=True)]
    )
    pictures = pictures + _NOISE * generator.standard_normal(pictures.shape)
    return pictures.reshape(count, -1).astype(np.float32), labels
