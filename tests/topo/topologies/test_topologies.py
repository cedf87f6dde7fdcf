"""Every property holds on every topology of any size."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topo.topologies.properties import PROPERTIES
from tests.topo.topologies.shapes import KINDS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROPERTIES)
@settings(max_examples=6)
@given(data=st.data())
def test_a_topology_of_any_size_has_the_property(name: str, kind: str, data: st.DataObject) -> None:
    PROPERTIES[name](data.draw(KINDS[kind]))
