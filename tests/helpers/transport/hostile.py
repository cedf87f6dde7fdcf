"""What a hostile sender makes of a valid frame."""

from __future__ import annotations

from random import Random

from endpoint.core import icrc


def mutate(frame: bytes, rng: Random) -> bytes:
    kind = rng.randrange(6)
    if kind == 0:
        return rng.randbytes(rng.choice((0, 13, 14, 60, 122, 128, 134, 138, 200, 1500)))
    if kind == 1:
        return frame[: rng.randrange(len(frame) + 1)]
    data = bytearray(frame)
    if kind == 2:
        data += rng.randbytes(rng.randrange(1, 40))
    for _ in range(rng.randrange(1, 6)):
        limit = min(len(data), 190) if rng.random() < 0.9 else len(data)
        at = rng.randrange(102 if limit > 102 and rng.random() < 0.7 else 0, limit)  # mostly behind UDP
        data[at] = rng.randrange(256) if rng.random() < 0.5 else data[at] ^ 1 << rng.randrange(8)
    if kind == 3 and len(data) > 120:
        # The sender is hostile, not the wire: the ICRC is right.
        data[-4:] = icrc.WIRE.pack(icrc.compute(bytes(data[54:-4])))
    return bytes(data)
