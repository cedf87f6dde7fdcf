"""Ranks that meet in a store; a meeting that fails leaves nothing in the NIC."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import mrclab
from benchmarks.rig.uverbs_rig import Rig, rig
from common.uverbs import ProgramLimits
from mrclab.errors import RefusedError
from mrclab.mesh.engine import MeshEngine, ThreadedEngine
from mrclab.mesh.joining import join
from tests.helpers.waiting import at_once

ONE_LINK = ProgramLimits(regions=2, qps=2)
LIMIT_S = 60.0


class Texts:
    """A store in this process."""

    def __init__(self, patience_s: float = 0.0, **texts: Any) -> None:
        self._texts = {f"mrc/{name}/1": json.dumps(text) for name, text in texts.items()}
        self._patience_s = patience_s
        self._news = threading.Condition()

    def set(self, key: str, value: str) -> None:
        with self._news:
            self._texts[key] = value
            self._news.notify_all()

    def get(self, key: str) -> bytes:
        with self._news:
            if not self._news.wait_for(lambda: key in self._texts, self._patience_s):
                raise TimeoutError(f"no {key}")
            return self._texts[key].encode()


@contextmanager
def engines(made: Rig) -> Iterator[list[MeshEngine]]:
    pair: list[MeshEngine] = [ThreadedEngine(mrclab.Context(name), rank) for rank, name in enumerate(made.names)]
    try:
        yield pair
    finally:
        at_once([one.close for one in pair])


@pytest.mark.parametrize("there", [{"about": {"rank": 1}}, {"about": {"rank": 1}, "links": {}}])
def test_a_rank_that_others_did_not_meet_can_join_again(there: dict[str, Any]) -> None:
    with rig(limits=ONE_LINK) as made, engines(made) as pair:
        with pytest.raises((TimeoutError, KeyError)):
            join(pair[0], Texts(**there), 0, 2, {"rank": 0})
        assert 1 not in pair[0].mesh
        store, found = Texts(LIMIT_S), {}

        def meet(rank: int) -> None:
            found[rank] = join(pair[rank], store, rank, 2, {"rank": rank})

        at_once([lambda: meet(0), lambda: meet(1)], LIMIT_S)
        assert found == {rank: [{"rank": 0}, {"rank": 1}] for rank in range(2)}
        assert all(1 - rank in one.mesh for rank, one in enumerate(pair))


def test_links_that_the_nic_refuses_leave_no_memory_and_no_queue_pair() -> None:
    with rig(limits=ProgramLimits(regions=3, qps=3)) as made, engines(made) as pair:
        store = Texts(about={"rank": 1})
        store.set("mrc/about/2", '{"rank": 2}')
        for _ in range(2):
            with pytest.raises(RefusedError):
                join(pair[0], store, 0, 3, {"rank": 0})
        context = pair[0].context
        pair[0].call(lambda: [context.reg_mr(4096) for _ in range(3)])
        pair[0].call(lambda: [context.create_qp(pair[0].mesh.cq) for _ in range(3)])
