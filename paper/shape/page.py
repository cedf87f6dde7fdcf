"""The comparison as tables: measurements, counts, and the power of the counts; as Markdown and as a page."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from controller.entries import SelectorGroup, SelectorMember
from controller.tables import tables
from judging.reports import page
from paper.report import notice
from paper.report.document import rows, wrapped
from paper.shape.fabrics import FABRICS, ComparedFabric
from paper.shape.runs import Found
from topo.count import THREE_TIER_NICS, THREE_TIER_OPTICS, THREE_TIER_SWITCHES, count_parts
from topo.planfile import load_plan

SWITCH_WATTS = 913
SWITCH_SOURCE = "UfiSpace S9321-64E, 64 × 800 Gb/s on Tomahawk 5: 913 W typical without transceivers, ipinfusion.com"
OPTIC_WATTS = 16
OPTIC_SOURCE = "NVIDIA MMS4X00-NS, 800 Gb/s twin-port OSFP: 16 W typical, 17 W at most, docs.nvidia.com"
TITLE = "The shape of a fabric: planes of two tiers, or three tiers"
INTRODUCTION = (
    "`./lab reproduce shape` made this page. Both fabrics have 16 hosts with 400 Gb/s each, switches of 1.6 Tb/s, and"
    " the links, queues and strict MRC of the paper's figures, in virtual time. With planes the chip has 16 ports of"
    " 100 Gb/s and a NIC four ports; without planes it has 4 ports of 400 Gb/s, and 16 hosts need three tiers."
)
SMALL = (
    "A fabric of 16 hosts uses 2 of the 16 ports of each spine in a plane, so its number of switches says nothing;"
    " switches, optics and power are counted at the paper's size, where every port is used."
)
COLLISIONS = (
    "Every host writes to the one half the fabric away. On all paths the share is of the NIC's rate. On single paths it"
    " is of the rate of one path: 100 Gb/s in a plane, 400 Gb/s in three tiers."
)
LOST = (
    "The same permutation after a switch stops for good, once retransmissions are over, against the permutation without"
    " a loss. A host is affected when it sends less than 95 % of that, and cut off below 2 %."
)
POWER = (
    f"Per switch {SWITCH_WATTS} W ({SWITCH_SOURCE}); per optic {OPTIC_WATTS} W ({OPTIC_SOURCE}). Both are of the"
    " paper's size: 64 ports of 800 Gb/s. NICs, cooling and power supplies are not counted."
)

Table = tuple[list[str], list[list[str]]]


def sections(found: Sequence[Found]) -> list[tuple[str, str, Table]]:
    """Title, text, table."""
    return [
        ("Latency of a 2-byte write", "Half a round trip between idle hosts.", latencies(found)),
        ("Collisions", COLLISIONS, collisions(found)),
        ("A lost switch", LOST, lost(found)),
        ("Tables", "Entries that the controller installs, all of them static.", entries()),
        ("Switches, optics, power", f"{SMALL} {POWER}", parts()),
    ]


def latencies(found: Sequence[Found]) -> Table:
    ways = ("one leaf", "one pod", "farthest")
    body = [
        [one.fabric.name, *(f"{one.latency_us[way]:.2f} µs" if way in one.latency_us else "–" for way in ways)]
        for one in found
    ]
    return ["fabric", *ways], body


def collisions(found: Sequence[Found]) -> Table:
    head = ["fabric", "all paths", "single paths, mean", "slowest flow", "flows that share a link", "flows"]
    body = [
        [
            one.fabric.name,
            f"{one.sprayed:.1%}",
            f"{statistics.fmean(one.single):.1%}",
            f"{min(one.single):.1%}",
            f"{sum(flow < 0.8 * max(one.single) for flow in one.single) / len(one.single):.0%}",
            str(len(one.single)),
        ]
        for one in found
    ]
    return head, body


def lost(found: Sequence[Found]) -> Table:
    body = [
        [
            one.fabric.name,
            row.tier,
            f"{row.kept:.1%}",
            f"{row.affected} of {one.fabric.plan.host_count}",
            str(row.cut_off),
        ]
        for one in found
        for row in one.lost
    ]
    return ["fabric", "lost", "goodput kept", "hosts affected", "hosts cut off"], body


def entries() -> Table:
    body = []
    for fabric in FABRICS:
        counts = {switch: count(fabric, switch.name) for switch in fabric.plan.switches()}
        for role in ("leaf", "spine", "core"):
            own = [value for switch, value in counts.items() if switch.role == role]
            if own:
                body.append([fabric.name, role, str(len(own)), str(max(own)), str(sum(own))])
    return ["fabric", "switches", "how many", "entries of one", "of all"], body


def count(fabric: ComparedFabric, name: str) -> int:
    """Table entries of a switch; members and groups of ECMP are counted as entries."""
    made = tables(fabric.plan, fabric.plan.switch_node(name))
    return sum(isinstance(one, SelectorGroup | SelectorMember) or hasattr(one, "table") for one in made)


def parts() -> Table:
    planes = count_parts(load_plan("paper"))
    columns = [
        (planes.nics, planes.switches, planes.optics, planes.longest_path_switches, planes.fabric_link_loss_share),
        (THREE_TIER_NICS, THREE_TIER_SWITCHES, float(THREE_TIER_OPTICS), 5, 1 / 32),
    ]
    watts = [switches / nics * SWITCH_WATTS + optics / nics * OPTIC_WATTS for nics, switches, optics, _, _ in columns]
    body = [
        ["NICs", *(f"{nics:,}" for nics, *_ in columns)],
        ["switches per NIC", *(f"{switches / nics:.4f}" for nics, switches, *_ in columns)],
        ["optics per NIC", *(f"{optics / nics:.0f}" for nics, _, optics, *_ in columns)],
        ["longest path", *(f"{crossed} switches" for *_, crossed, _ in columns)],
        ["a lost T0–T1 link takes of a leaf", *(f"{share:.1%}" for *_, share in columns)],
        ["power per NIC", *(f"{value:.0f} W" for value in watts)],
        ["power, relative", "1.00", f"{watts[1] / watts[0]:.2f}"],
    ]
    return ["at the paper's size", "8 planes of 2 tiers", "1 plane of 3 tiers"], body


def markdown(found: Sequence[Found], short: bool) -> str:
    """The page as Markdown."""
    texts = [f"# {TITLE}\n", *([wrapped(f"**{notice.SHORT}**")] if short else []), wrapped(INTRODUCTION)]
    for title, text, (head, body) in sections(found):
        texts += [f"## {title}\n", wrapped(text), rows(head, body)]
    return "\n".join(texts)


def html(found: Sequence[Found], short: bool) -> str:
    """The page."""
    return page.page(
        TITLE,
        f"<h1>{page.text(TITLE)}</h1>",
        page.paragraph(notice.plain(notice.SHORT)) if short else "",
        page.paragraph(notice.plain(INTRODUCTION), soft=True),
        *(
            page.section(title, page.paragraph(text), page.table(head, body))
            for title, text, (head, body) in sections(found)
        ),
    )
