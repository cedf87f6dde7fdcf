"""Small pictures, and a network of one hidden layer that learns them: cross-entropy, its gradient, steepest descent."""

import hashlib
from typing import Any

import numpy as np

from common.seeds import Purpose, derive

Floats = np.ndarray[Any, np.dtype[np.float32]]
Labels = np.ndarray[Any, np.dtype[np.int64]]

SIDE = 8
CLASSES = 10
_NOISE = 0.6
_SHIFT = 1


def make_data(seed: int, count: int) -> tuple[Floats, Labels]:
    """`count` pictures of SIDE × SIDE values in a row each, and which of the CLASSES shapes each shows, with noise."""
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


class Model:
    """All weights lie one after the other in `weights`, as float32; the layers are views of it."""

    def __init__(self, seed: int, hidden: int) -> None:
        inputs = SIDE * SIDE
        shapes = [(inputs, hidden), (hidden,), (hidden, CLASSES), (CLASSES,)]
        sizes = [int(np.prod(shape)) for shape in shapes]
        ends = np.cumsum(sizes)
        self.weights: Floats = np.zeros(int(ends[-1]), np.float32)
        self._shapes = [
            (int(end) - size, int(end), shape) for end, size, shape in zip(ends, sizes, shapes, strict=True)
        ]
        generator = np.random.default_rng(int(derive(seed, Purpose.MODEL)))
        for layer in (0, 2):
            view = self._view(self.weights, layer)
            view[...] = generator.standard_normal(view.shape) / np.sqrt(view.shape[0])

    def gradient(self, pictures: Floats, labels: Labels) -> tuple[float, Floats]:
        """The mean loss over these pictures, and its gradient in the order of `weights`."""
        first, first_bias, second, second_bias = (self._view(self.weights, layer) for layer in range(4))
        inner = np.maximum(pictures @ first + first_bias, 0)
        scores = inner @ second + second_bias
        scores -= scores.max(axis=1, keepdims=True)
        shares = np.exp(scores)
        shares /= shares.sum(axis=1, keepdims=True)
        rows = np.arange(len(labels))
        loss = float(-np.log(shares[rows, labels]).mean())
        shares[rows, labels] -= 1
        shares /= np.float32(len(labels))
        gradient = np.empty_like(self.weights)
        back = shares @ second.T
        back[inner <= 0] = 0
        for layer, value in enumerate((pictures.T @ back, back.sum(axis=0), inner.T @ shares, shares.sum(axis=0))):
            self._view(gradient, layer)[...] = value
        return loss, gradient

    def step(self, gradient: Floats, rate: float) -> None:
        self.weights -= np.float32(rate) * gradient

    def digest(self) -> str:
        """The same for the same weights, to the bit."""
        return hashlib.sha256(self.weights.tobytes()).hexdigest()[:16]

    def _view(self, flat: Floats, layer: int) -> Floats:
        start, end, shape = self._shapes[layer]
        return flat[start:end].reshape(shape)
