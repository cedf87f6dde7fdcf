"""Words that users of other labs type, and what they mean here: containerlab, Kathará, Mininet, the P4 tutorials."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from topo.fault import VERBS

SUGGESTIONS: Mapping[str, str] = {
    "deploy": "up",
    "destroy": "down",
    "redeploy": "down, then up",
    "lstart": "up",
    "lrestart": "down, then up",
    "lclean": "down",
    "lwipe": "down",
    "wipe": "down",
    "linfo": "inspect",
    "connect": "exec NODE -- bash",
    "lconfig": "inspect",
    "tools": "fault",
    "netem": "fault",
    "impairments": "fault",
    "stop": "down",
    "create": "up",
    "delete": "down",
    "clean": "down",
    "build": "switch compile",
    "make": "run",
    "ps": "status",
    "ls": "list",
    "info": "inspect",
    "nodes": "inspect",
    "links": "inspect NODE",
    "net": "inspect",
    "ssh": "exec NODE -- bash",
    "attach": "exec NODE -- bash",
    "cli": "shell",
    "mn": "shell",
    "mininet": "shell",
    "draw": "graph",
    "plot": "graph",
    "pcap": "capture",
    "tcpdump": "capture",
    "sniff": "capture",
    "wireshark": "capture LINK --write - | wireshark -k -i -",
    "stats": "counters",
    "top": "counters --watch",
    "ping": "exec h0 -- ping h3",
    "iperf": "traffic write_bw h0 h3",
    "iperf3": "exec h0 -- iperf3 -c h3",
    "perftest": "traffic write_bw h0 h3",
    "heal": "undo all",
    "restore": "undo",
    "tables": "controller show NODE",
    "save": "export",
    "generate": "export",
    "help": "--help",
    "version": "--version",
}


def suggest(word: str, known: Iterable[str]) -> str:
    """A known word that a user may have meant by an unknown one; "" when there is none like it."""
    if word.lower() in SUGGESTIONS:
        return SUGGESTIONS[word.lower()]
    for verb in VERBS.values():
        if word.lower() in (verb.name, *verb.elsewhere):
            return f"fault {verb.usage}"
    close = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return close[0] if close else ""


def nearest_option(word: str, known: Iterable[str]) -> str:
    """The known option that a user may have meant by an unknown one, which begins with a hyphen; "" without one."""
    options = [option for option in known if option.startswith("--")]
    begun = [option for option in options if len(word) > len("--x") and option.startswith(word)]
    if len(begun) == 1:
        return begun[0]
    names = {option.lstrip("-"): option for option in options}
    close = difflib.get_close_matches(word.lstrip("-").lower(), names, n=1, cutoff=0.6)
    return names[close[0]] if close else ""
