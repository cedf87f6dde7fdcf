"""How the ranks of a group meet, and link up with those that no earlier group has linked."""

import json
from contextlib import suppress
from typing import Any, Protocol

from mrclab.errors import JobFailedError, MRCError
from mrclab.mesh.engine import MeshEngine


class Store(Protocol):
    """Where ranks leave texts for each other, such as `torch.distributed.Store`."""

    def set(self, key: str, value: str, /) -> object: ...
    def get(self, key: str, /) -> Any:
        """The bytes of a key, once there are any. Raises after a time."""


def join(engine: MeshEngine, store: Store, rank: int, size: int, about: dict[str, Any]) -> list[dict[str, Any]]:
    """The words of each rank about itself, in order of its rank in the group; all links between them are open then.

    `about` has `rank`, this process's number in the whole job. Waiting in the store is the caller's: another rank may
    come there only after a collective that is under way. Raises what the store or the NIC raises, and leaves no link:
    a later group of the same ranks would take it for one that works.
    """
    mesh, call, me = engine.mesh, engine.call, int(about["rank"])
    abouts = _swap(store, "about", rank, size, about)
    ranks = [int(other["rank"]) for other in abouts]
    new = [other for other in sorted(ranks) if other != me and other not in mesh]
    links: dict[int, Any] = {}

    def connect() -> None:
        for other in new:
            mesh.connect(other, links[other][str(me)])

    try:
        infos = call(lambda: {other: mesh.add(other) for other in new})
        links.update(zip(ranks, _swap(store, "links", rank, size, infos), strict=True))
        call(connect)
        _swap(store, "ready", rank, size, None)  # no rank writes to one that is not connected
    except BaseException:
        with suppress(MRCError, JobFailedError):  # the NIC is gone, and its links with it
            call(lambda: mesh.remove(new))
        raise
    call(lambda: mesh.open(new))
    return abouts


def _swap(store: Store, name: str, rank: int, size: int, mine: Any) -> list[Any]:
    """Each rank's value, in order of rank."""
    store.set(f"mrc/{name}/{rank}", json.dumps(mine))
    return [json.loads(bytes(store.get(f"mrc/{name}/{other}"))) for other in range(size)]
