"""Plans of every topology, of any size, for hypothesis."""

from pathlib import Path

from hypothesis import reject, strategies as st

from topo.node import Host, Switch, leaf
from topo.plan import Plan
from topo.planfile import PlanError, parse_document, parse_plan
from topo.topologies import LeafSpine, Pods, Rails, Topology, TopologyError, listed, uneven as written
from topo.topologies.topology import Cable


def on(shape: Topology) -> Plan:
    """A plan of this shape."""
    beyond = None if type(shape) is LeafSpine else shape
    return Plan("any", shape.planes, shape.leaves, shape.spines, shape.hosts_per_leaf, shape=beyond)


@st.composite
def pods(draw: st.DrawFn) -> Plan:
    count, spines = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    return on(
        Pods(
            planes=draw(st.integers(1, 3)), pods=count, leaves=count * draw(st.integers(1, 3)), spines=count * spines,
            cores=spines * draw(st.integers(1, 3)), hosts_per_leaf=draw(st.integers(1, 3)),
        )
    )  # fmt: skip


leaf_spines = st.builds(LeafSpine, st.integers(1, 3), st.integers(2, 4), st.integers(1, 4), st.integers(1, 3)).map(on)


LEAF_SPINES = st.builds(LeafSpine, st.integers(1, 8), st.integers(1, 5), st.integers(1, 5), st.integers(1, 4)).map(on)
"""Also of one leaf, and wide ones."""


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


@st.composite
def uneven(draw: st.DrawFn) -> Plan:
    """A leaf-spine fabric as `uneven` of a file says it: parts missing, slower cables, more hosts under a leaf."""
    planes, leaves, spines = draw(st.integers(1, 2)), draw(st.integers(2, 4)), draw(st.integers(2, 4))
    cables = [f"p{p}l{one}-p{p}s{two}" for p in range(planes) for one in range(leaves) for two in range(spines)]
    fabric = {
        "topology": "uneven", "planes": planes, "leaves": leaves, "spines": spines,
        "hosts_per_leaf": draw(st.integers(1, 2)),
        "speeds": draw(st.dictionaries(st.sampled_from(cables), st.sampled_from((0.25, 0.5, 2.0)), max_size=3)),
        "more_hosts": draw(st.dictionaries(st.sampled_from([f"l{n}" for n in range(leaves)]), st.integers(1, 2))),
        "without": draw(st.lists(st.sampled_from([*cables, f"p0s{spines - 1}"]), max_size=3, unique=True)),
    }  # fmt: skip
    try:
        return parse_document({"name": "any", "fabric": fabric})
    except PlanError:
        reject()


@st.composite
def meshes(draw: st.DrawFn) -> Plan:
    """Leaves wired to each other, in a line, a ring or every one to every other, in each plane as drawn."""
    leaves = draw(st.integers(2, 5))
    hosts = draw(st.lists(st.integers(1, 2), min_size=leaves, max_size=leaves))
    under = [index for index, count in enumerate(hosts) for _ in range(count)]
    cables = []
    for plane in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(("line", "ring", "mesh")))
        pairs = [(one, other) for one in range(leaves) for other in range(one + 1, leaves)]
        steps = (1, leaves - 1) if kind == "ring" else (1,)
        near = [(one, other) for one, other in pairs if other - one in steps]
        cables += [Cable(Host(number), leaf(plane, index)) for number, index in enumerate(under)]
        cables += [Cable(leaf(plane, one), leaf(plane, other)) for one, other in (pairs if kind == "mesh" else near)]
    return on(listed(cables))


KINDS = {
    "leaf-spine": leaf_spines, "pods": pods(), "rails": rails(), "uneven": uneven(), "list": lists(), "mesh": meshes(),
}  # fmt: skip
"""By topology, and meshes apart from other lists."""
plans = st.one_of(*KINDS.values())

RAILS = """name = "rails"
[fabric]
topology = "rails"
planes = 2
leaves = 4
spines = 2
hosts_per_leaf = 2
rails = 2
"""
ROOT = Path(__file__).parents[3]
EXAMPLE = str(written.__doc__).split("\n\n")[1]
UNEVEN = f'name = "uneven"\n{EXAMPLE}\n'
"""The example of the module's docstring."""
TEXTS = {
    "pods": (ROOT / "topo/plans/pods.toml").read_text(encoding="utf-8"),
    "rails": RAILS,
    "uneven": UNEVEN,
    "list": (ROOT / "docs/templates/mesh.toml").read_text(encoding="utf-8"),
}
"""A small plan of each topology beyond two even tiers, as its file says it; of lists a mesh without spines."""
SMALL = {name: parse_plan(text) for name, text in TEXTS.items()}
