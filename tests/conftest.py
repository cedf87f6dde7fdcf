"""The order of tests, where it matters."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The fabric's tests come first: they give their thread a private /run, which gRPC's own threads, once another test
    has started them, do not see; and BMv2's P4Runtime sockets are in /run."""
    items.sort(key=lambda item: "topo" not in item.path.parts)
