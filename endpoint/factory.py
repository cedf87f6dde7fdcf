"""Makes a host's transport by its name. All other code sees only an `endpoint.transport.Transport`."""

import importlib
import random
from collections.abc import Mapping
from typing import Any

from common.seeds import Purpose, derive
from endpoint import plugins
from endpoint.profile import NicProfile
from endpoint.transport import Transport

__all__ = ["make"]

_CLASSES = {"mrc": ("endpoint.mrc.endpoint", "Endpoint"), "roce": ("endpoint.roce.endpoint", "RoceEndpoint")}
"""Of two names: mypyc sorts the classes of a NIC by them, and a build would have either order of two that are alike."""
NAMES = tuple(_CLASSES)


class TransportError(ValueError):
    """There is no such transport, or it has no such setting."""


def make(
    name: str, profile: NicProfile, seed: int, settings: Mapping[str, Any], now_ns: int, *, counted: bool = False
) -> Transport:
    """A NIC of that transport. `settings` are its own; its choices follow from `seed` and the host's name.

    With `counted` its frames leave payload out (`endpoint.transport.Transport.counted`).
    """
    if name not in _CLASSES:
        raise TransportError(f"there is no transport {name!r}; valid: {', '.join(NAMES)}")
    if name == "mrc":
        plugins.add(settings)
    module, own = _CLASSES[name]
    endpoint = getattr(importlib.import_module(module), own)
    rng = random.Random(derive(seed, Purpose.HOST, profile.host))
    made = endpoint(profile, rng=rng, now_ns=now_ns, **settings)
    if counted and made.client_check:
        raise TransportError(
            "payload must be real in the dialect mrc-client: a frame without payload is known by its ICRC"
        )
    made.counted = counted
    transport: Transport = made
    return transport
