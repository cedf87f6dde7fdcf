"""Topology files of htsim (`.topo`), read as plans: leaf-spine fabrics, and fat trees of three tiers.

    Nodes 1024
    Tiers 2
    Podsize 1024
    Tier 0
    Downlink_speed_Gbps 100
    Radix_Down 32
    Radix_Up 32
    Downlink_Latency_ns 1000

With three tiers Podsize is that of a pod, and every core reaches each pod by one link. A switch's latency is divided
between the links at it, half each: so every path lasts as long as in the file. The file says nothing about queues, ECN
and trimming; those are a plan's defaults and are changed by `--set`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from topo.errors import PlanError

HEADERS: Final = ("nodes", "tiers", "podsize")
ATTRIBUTES: Final = (
    "downlink_speed_gbps",
    "radix_down",
    "radix_up",
    "downlink_latency_ns",
    "switch_latency_ns",
    "oversubscribed",
    "bundle",
)
DEFAULTS: Final = {"switch_latency_ns": 0, "oversubscribed": 1, "bundle": 1}
REFUSED: Final = ("queue_up", "queue_down")
WHOLE_MAX = 10**9
NAMES: Final = {2: "Nodes", 3: "Podsize"}

Given = tuple[int, int]
"""A number and its line."""


def document(text: str, source: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The plan's document, as `planfile.parse_document` takes it, and the line behind each key that a plan may refuse.
    PlanError names the line that cannot be."""
    try:
        header, tiers = _read(text)
        told = {"name": Path(source).stem, "description": f"read from {Path(source).name}", **_plan(header, tiers)}
        low, high = tiers[:2]
        lines = {
            "fabric.hosts_per_leaf": low["radix_down"][1],
            "fabric.spines": low["radix_up"][1],
            "fabric.cores": high.get("radix_up", low["radix_up"])[1],
            "fabric.leaves": header["nodes"][1],
            "fabric.pods": header["podsize"][1],
            "links.host_rate_bps": low["downlink_speed_gbps"][1],
            "links.hardware_rate_bps": low["downlink_speed_gbps"][1],
            "links.fabric_rate_bps": high["downlink_speed_gbps"][1],
            "links.host_delay_ns": low["downlink_latency_ns"][1],
            "links.fabric_delay_ns": high["downlink_latency_ns"][1],
        }
        return told, lines
    except _BadLineError as error:
        where = f"{source}:{error.line}" if error.line else source  # an empty file has no line
        raise PlanError(f"{where}: {error}") from None


class _BadLineError(ValueError):
    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


def _read(text: str) -> tuple[dict[str, Given], list[dict[str, Given]]]:
    header: dict[str, Given] = {}
    tiers: list[dict[str, Given]] = []
    line = 0
    for line, whole in enumerate(text.splitlines(), 1):
        words = whole.split()
        if not words or words[0].startswith("#"):
            continue
        name = words[0].lower()
        if len(words) != 2:
            raise _BadLineError(line, f"a line must be NAME NUMBER (got {whole.strip()[:60]!r})")
        value = _number(words[1], words[0], line)
        if name == "tier":
            if value != len(tiers):
                raise _BadLineError(line, f"tiers must be numbered from 0 in order (got {value})")
            tiers.append({"tier": (value, line)})
            continue
        place = tiers[-1] if tiers else header
        known = ATTRIBUTES if tiers else HEADERS
        if tiers and name in REFUSED:
            raise _BadLineError(
                line, f"{words[0]} must be left out: a plan's queues are multiples of Plane_BDP (--set)"
            )
        if name not in known:
            raise _BadLineError(line, f"the name must be one of tier, {', '.join(known)} (got {words[0]!r})")
        if name in place:
            raise _BadLineError(line, f"{words[0]} must be given once; line {place[name][1]} has it already")
        place[name] = (value, line)
    return {**header, "end": (0, line)}, tiers


def _number(text: str, name: str, line: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 11 and int(text) <= WHOLE_MAX):
        raise _BadLineError(line, f"{name} must be a whole number up to {WHOLE_MAX} (got {text!r})")
    return int(text)


def _plan(header: Mapping[str, Given], tiers: list[dict[str, Given]]) -> dict[str, Any]:
    end = header["end"][1]
    for name in HEADERS:
        if name not in header:
            raise _BadLineError(end, f"the file must have {name.capitalize()}")
    (nodes, nodes_line), (count, count_line), (pod, pod_line) = (header[name] for name in HEADERS)
    if count not in (2, 3):
        raise _BadLineError(count_line, f"Tiers must be 2 or 3 (got {count})")
    if len(tiers) != count:
        raise _BadLineError(end, f"the file must describe each tier (got {len(tiers)} of {count})")
    if count == 2 and pod != nodes:
        raise _BadLineError(pod_line, f"a fabric of two tiers must be one pod of all {nodes} nodes (got {pod})")
    if not pod or nodes % pod:
        raise _BadLineError(pod_line, f"Podsize must divide Nodes, {nodes} (got {pod})")
    for place, given in enumerate(tiers):
        for name in ATTRIBUTES[:4]:
            if name not in given and not (name == "radix_up" and place == count - 1):
                raise _BadLineError(given["tier"][1], f"tier {place} must have {name}")
    low, *middle, high = ({**{name: (value, 0) for name, value in DEFAULTS.items()}, **tier} for tier in tiers)
    if "radix_up" in high:
        raise _BadLineError(high["radix_up"][1], "the upper tier must have no Radix_Up: nothing is above it")
    for tier in (low, *middle, high):
        if tier["bundle"][0] != 1:
            raise _BadLineError(tier["bundle"][1], "Bundle must be 1: two switches have one link")
    per_leaf, per_leaf_line = low["radix_down"]
    if not per_leaf or pod % per_leaf:
        raise _BadLineError(per_leaf_line, f"Radix_Down must divide {NAMES[count]}, {pod} (got {per_leaf})")
    leaves, spines, pods = pod // per_leaf, low["radix_up"][0], nodes // pod
    for lower, upper, reached, units in zip(
        (low, *middle), (*middle, high), (leaves, pods), (f"leaves of {per_leaf} nodes", "pods"), strict=False
    ):
        if upper["radix_down"][0] != reached:
            who = "a spine" if upper is not high or count == 2 else "a core"
            got, line = upper["radix_down"]
            raise _BadLineError(line, f"{who} must reach all {reached} {units} (got {got})")
        _check_oversubscription(lower, upper, nodes_line)
    fabric: dict[str, Any] = {"planes": 1, "leaves": leaves * pods, "spines": spines * pods, "hosts_per_leaf": per_leaf}
    if middle:
        _check_alike(low, middle[0], high)
        fabric |= {"topology": "pods", "pods": pods, "cores": spines * middle[0]["radix_up"][0]}
    return {"fabric": fabric, "links": _links(low, *(middle or [high]))}


def _check_alike(low: Mapping[str, Given], middle: Mapping[str, Given], high: Mapping[str, Given]) -> None:
    """A plan has one rate and one latency for all links between switches."""
    if high["downlink_speed_gbps"][0] != middle["downlink_speed_gbps"][0]:
        told, line = high["downlink_speed_gbps"]
        wanted = middle["downlink_speed_gbps"][0]
        raise _BadLineError(line, f"Downlink_speed_Gbps must be tier 1's, {wanted} (got {told}): a plan has one")
    upper, lower = _links(middle, high)["fabric_delay_ns"], _links(low, middle)["fabric_delay_ns"]
    if upper != lower:
        line = high["downlink_latency_ns"][1]
        raise _BadLineError(
            line, f"a link and half of its switches must take {lower} ns, as below tier 1 (got {upper})"
        )


def _check_oversubscription(low: Mapping[str, Given], high: Mapping[str, Given], line: int) -> None:
    """A switch's rates down and up must have the ratio that the file states, where it states one."""
    stated, at = low["oversubscribed"]
    down = low["radix_down"][0] * low["downlink_speed_gbps"][0]
    up = low["radix_up"][0] * high["downlink_speed_gbps"][0]
    if at and down != stated * up:
        raise _BadLineError(
            at, f"Oversubscribed must be a switch's rate down over its rate up, {down} / {up} (got {stated})"
        )
    if not up:
        raise _BadLineError(low["radix_up"][1] if not low["radix_up"][0] else line, "a switch must have links up")


def _links(low: Mapping[str, Given], high: Mapping[str, Given]) -> dict[str, int]:
    leaf_ns, spine_ns = low["switch_latency_ns"][0], high["switch_latency_ns"][0]
    rate_bps = low["downlink_speed_gbps"][0] * 10**9
    return {
        "host_rate_bps": rate_bps,
        "fabric_rate_bps": high["downlink_speed_gbps"][0] * 10**9,
        "host_delay_ns": low["downlink_latency_ns"][0] + leaf_ns // 2,
        "fabric_delay_ns": high["downlink_latency_ns"][0] + (leaf_ns + spine_ns) // 2,
        "hardware_rate_bps": rate_bps,
    }
