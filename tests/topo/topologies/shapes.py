"""Plans of every topology, of any size, for hypothesis."""

from __future__ import annotations

from hypothesis import reject
from hypothesis import strategies as st

from topo.node import Host, Switch
from topo.plan import Plan
from topo.topologies import LeafSpine, Pods, Rails, Topology, TopologyError, listed
from topo.topologies.topology import Cable


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


leaf_spines = st.builds(LeafSpine, st.integers(1, 3), st.integers(2, 4), st.integers(1, 4), st.integers(1, 3)).map(on)


@st.composite
def rails(draw: st.DrawFn) -> Plan:
    count, groups = draw(st.integers(2, 3)), draw(st.integers(1, 2))
    return on(Rails(draw(st.integers(1, 2)), count * groups, draw(st.integers(1, 3)), draw(st.integers(1, 3)), count))


@st.composite
def lists(draw: st.DrawFn) -> Plan:
    """An even fabric with some cables gone and some of another speed, where what is left is a fabric."""
    even = draw(st.one_of(leaf_spines, pods(), rails())).topology
    cables = list(even.cables())
    gone = draw(st.sets(st.integers(0, len(cables) - 1), max_size=3))
    speeds = draw(st.lists(st.sampled_from((0.5, 1.0)), min_size=len(cables), max_size=len(cables)))
    left = [
        Cable(cable.lower, cable.upper, speed if isinstance(cable.lower, Switch) else 1.0)
        for number, (cable, speed) in enumerate(zip(cables, speeds, strict=True))
        if number not in gone or isinstance(cable.lower, Host)
    ]
    try:
        return on(listed(left))
    except TopologyError:
        reject()


plans = st.one_of(pods(), rails(), lists())
