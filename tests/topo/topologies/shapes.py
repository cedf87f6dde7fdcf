"""Plans of every topology, of any size, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from topo.plan import Plan
from topo.topologies import Pods, Topology


def on(shape: Topology) -> Plan:
    """A plan of this shape."""
    return Plan("any", shape.planes, shape.leaves, shape.spines, shape.hosts_per_leaf, shape=shape)


@st.composite
def pods(draw: st.DrawFn) -> Plan:
    count, spines = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    return on(
        Pods(
            planes=draw(st.integers(1, 3)),
            pods=count,
            leaves=count * draw(st.integers(1, 3)),
            spines=count * spines,
            cores=spines * draw(st.integers(1, 3)),
            hosts_per_leaf=draw(st.integers(1, 3)),
        )
    )


plans = st.one_of(pods())
