"""An endpoint with the codec in C does with every frame what the endpoint without it does, and counts the same.

The interpreted endpoint is given the C here, then the compiled form with its own C is held against the interpreted one;
`tests/running/worlds/test_simulated.py` compares whole runs.
"""

import contextlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from common.compiled import finder
from common.compiled.unit import find
from endpoint import FORM, compiled
from endpoint.mrc.endpoint import Endpoint
from endpoint.nic import codec
from endpoint.transport import QPState, QueueFull
from tests.helpers.transport import Bench
from tests.helpers.transport.hostile import corpus, mutate

# Prints the form, whether the codec is in C, and a digest of lives.
PROGRAM = """
import hashlib
from common.compiled import finder
from common.compiled.unit import find
from endpoint import FORM, compiled
from endpoint.nic import codec
from tests.endpoint.mrc.test_codec_in_endpoint import life
told = repr([life(seed, 1500, **settings) for seed in (3, 4) for settings in ({}, {"dialect": "mrc-client"})])
print(FORM.compiled, codec.IN_C, hashlib.sha256(told.encode()).hexdigest())
"""


def seen(endpoint: Endpoint) -> list[Any]:
    """What has become of the endpoint, to be compared with another's."""
    return [endpoint.counters(), list(iter(endpoint.next_event, None)), endpoint.next_timer_ns()]


def life(seed: int, count: int, **settings: Any) -> list[Any]:
    """All that two endpoints say and send in a life with valid, changed and strange frames."""
    rng = Random(seed)
    bench = Bench(max_recv_wr=1 << 16, **settings)
    frames = corpus(bench)
    story: list[Any] = []
    for number in range(count):
        frame = mutate(rng.choice(frames), rng) if rng.random() < 0.8 else rng.choice(frames)
        endpoint = bench.a if rng.random() < 0.4 else bench.b
        endpoint.receive(rng.randrange(1, 5), [memoryview(frame) if rng.random() < 0.5 else frame], bench.now_ns)
        if number % 16 == 0:
            bench.now_ns += rng.randrange(20_000)
            bench.timers()
            if QPState.ERROR in (bench.qp_a.state, bench.qp_b.state):  # as what is forged well may say
                bench = Bench(max_recv_wr=1 << 16, **settings)
                frames = corpus(bench)
            with contextlib.suppress(QueueFull):
                bench.qp_a.post_write(
                    number, bench.region, rng.randrange(64), rng.randrange(20_000), bench.target.va,
                    bench.target.rkey, rng.choice((None, 7)),
                )  # fmt: skip
            for end, other in ((bench.a, bench.b), (bench.b, bench.a)):
                sent = end.packets_to_send(bench.now_ns, 64)
                story.append(sent)
                for port, data in sent:
                    other.receive(port, [data if rng.random() < 0.9 else mutate(data, rng)], bench.now_ns)
            story.append([seen(end) for end in (bench.a, bench.b)])
            story.append([bench.completions(), bench.received(), bytes(bench.sink)])
    return story


@pytest.mark.skipif(FORM.compiled, reason="what is compiled takes its own codec, and no other")
@pytest.mark.parametrize("settings", [{}, {"timestamps": True}, {"dialect": "mrc-client"}], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_an_endpoint_lives_the_same_life_with_the_codec_in_c(native, monkeypatch, seed, settings) -> None:
    calls: Counter[str] = Counter()

    def counting(name: str) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            found = getattr(native, name)(*arguments)
            calls["left to Python" if found is False else name] += 1
            return found

        return counted

    expected = life(seed, 1500, **settings)
    monkeypatch.setattr(codec, "IN_C", True)
    for name in ("usual", "write", "sack", "SEAL", "PLACE"):
        monkeypatch.setattr(codec, name, counting(name.lower()))
    for number, (ours, plain) in enumerate(zip(life(seed, 1500, **settings), expected, strict=True)):
        assert ours == plain, f"step {number}"
    assert min(calls["usual"], calls["left to Python"], calls["seal"]) > 100
    assert calls["place"] > 10
    assert calls["sack"]
    assert bool(calls["write"]) is not settings.get("timestamps", False)  # stamped writes stay with Python


@pytest.mark.slow
def test_the_compiled_form_with_its_codec_lives_the_same_life() -> None:
    """Of the sources as they are: `./lab test` makes the build; making one here would take a minute unasked."""
    if find(compiled.UNIT, compiled.UNIT.key()) is None:
        pytest.skip("the endpoint is not compiled as it is; ./lab compile")
    words = [sys.executable, "-c", PROGRAM]
    root = Path(__file__).parents[3]
    told = [
        subprocess.check_output(
            words, cwd=root, env={**os.environ, finder.SWITCH: form}, text=True, timeout=300
        ).split()
        for form in ("on", "off")
    ]
    assert [row[:2] for row in told] == [["True", "True"], ["False", "False"]]
    assert told[0][2] == told[1][2]
