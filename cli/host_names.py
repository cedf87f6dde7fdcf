"""Hosts as a command line names them, such as `h0..h3,h6`."""

import re

from topo import Host, Plan

_RANGE = re.compile(r"(h\d+)(?:\.\.(h\d+))?")


def parse_hosts(plan: Plan, text: str) -> list[Host]:
    """The hosts that `h0..h3,h6` names. ValueError names the part that is wrong."""
    hosts: list[Host] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"--ranks must be hosts such as h0..h7 or h0,h2,h4 (got {part!r})")
        first = plan.host(match[1])
        last = plan.host(match[2]) if match[2] else first
        if last.index < first.index:
            raise ValueError(f"--ranks: a range must go upwards (got {part!r})")
        hosts += [Host(number) for number in range(first.index, last.index + 1)]
    if twice := {host.name for host in hosts if hosts.count(host) > 1}:
        raise ValueError(f"--ranks must name each host once (got {', '.join(sorted(twice))} more than once)")
    return hosts
