"""Words that users of other labs type, and what they mean here: containerlab, Kathará, Mininet, the P4 tutorials."""

from collections.abc import Iterable, Mapping

from common.terminal.choices import close
from topo.fault import VERBS

MEANINGS: Mapping[str, str] = {
    "up": "deploy lstart create",
    "down": "destroy lclean lwipe wipe stop delete clean",
    "down, then up": "redeploy lrestart",
    "inspect": "linfo lconfig info nodes net",
    "exec NODE -- bash": "connect ssh attach",
    "fault": "tools netem impairments",
    "switch compile": "build",
    "run": "make",
    "status": "ps",
    "list": "ls",
    "course": "labs exercises",
    "inspect NODE": "links",
    "shell": "cli mn mininet",
    "graph": "draw plot",
    "capture": "pcap tcpdump sniff",
    "capture LINK --wireshark": "wireshark",
    "counters": "stats",
    "counters --watch": "top",
    "exec h0 -- ping h3": "ping",
    "traffic write_bw h0 h3": "iperf perftest",
    "exec h0 -- iperf3 -c h3": "iperf3",
    "undo all": "heal",
    "undo": "restore",
    "controller show NODE": "tables",
    "export": "save generate",
    "--help": "help",
    "--version": "version",
}
SUGGESTIONS: Mapping[str, str] = {word: meaning for meaning, words in MEANINGS.items() for word in words.split()}


def suggest(word: str, known: Iterable[str]) -> str:
    """A known word that a user may have meant by an unknown one; "" when there is none like it."""
    if word.lower() in SUGGESTIONS:
        return SUGGESTIONS[word.lower()]
    for verb in VERBS.values():
        if word.lower() in (verb.name, *verb.elsewhere):
            return f"fault {verb.usage}"
    return close(word, known)


def nearest_option(word: str, known: Iterable[str]) -> str:
    """The known option that a user may have meant by an unknown one, which begins with a hyphen; "" without one."""
    options = [option for option in known if option.startswith("--")]
    begun = [option for option in options if len(word) > len("--x") and option.startswith(word)]
    if len(begun) == 1:
        return begun[0]
    names = {option.lstrip("-"): option for option in options}
    return names.get(close(word.lstrip("-"), names), "")
