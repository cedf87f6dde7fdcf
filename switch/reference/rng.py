"""The pseudo-random generator of both engines: splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
generators", 2014). Small enough to be written the same way in C, and good enough for loss and ECN marking."""

_M64 = (1 << 64) - 1


class SplitMix64:
    __slots__ = ("state",)

    def __init__(self, seed: int) -> None:
        self.state = seed & _M64

    def draw(self) -> int:
        """The next 64 bits."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _M64
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _M64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _M64
        return z ^ (z >> 31)

    def between(self, low: int, high: int) -> int:
        """A number of low..high inclusive, both of 64 bits; low must not exceed high."""
        span = (high - low + 1) & _M64
        return self.draw() if span == 0 else low + self.draw() % span

    def chance(self, share: float) -> bool:
        """True with probability `share`, 0..1; exact to 2**-53."""
        return (self.draw() >> 11) < int(share * (1 << 53))
