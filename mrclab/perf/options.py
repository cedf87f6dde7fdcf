"""perftest's options, by its names and letters, as far as they mean something here."""

import argparse
from dataclasses import dataclass, fields
from typing import NoReturn

SIZE_MAX = 1 << 23
"""The largest size of --all, as in perftest."""
_REFUSED = {
    "-R": "connections are exchanged over TCP (no RDMA-CM)",
    "--rdma_cm": "connections are exchanged over TCP (no RDMA-CM)",
    "-I": "there is no inline data",
    "--inline_size": "there is no inline data",
    "-m": "the payload of a packet is the plan's",
    "--mtu": "the payload of a packet is the plan's",
    "-u": "the transport's settings are the agent's (--setting)",
    "--qp-timeout": "the transport's settings are the agent's (--setting)",
}


@dataclass(frozen=True, slots=True)
class PerfOptions:
    """Options that both ends must share; `servername` is None at the server. A test may lack those with a default."""

    servername: str | None
    port: int
    device: str | None
    size: int
    iters: int
    all_sizes: bool
    json: bool
    qps: int = 1
    tx_depth: int = 1
    duration_s: int = 0
    bidirectional: bool = False
    post_list: int = 1
    gbits: bool = False
    histogram: bool = False

    def sizes(self) -> list[int]:
        """The sizes that are measured, one after the other, in bytes."""
        return [1 << power for power in range(1, SIZE_MAX.bit_length())] if self.all_sizes else [self.size]

    def shared(self) -> dict[str, int | bool]:
        """The options in which client and server must not differ."""
        names = ("size", "iters", "qps", "duration_s", "all_sizes", "bidirectional")
        return {name: getattr(self, name) for name in names}


class _PerftestParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        why = [f"{word}: {reason}" for word, reason in _REFUSED.items() if message.endswith(f": {word}")]
        super().error(why[0] if why else message)


def parse(program: str, what: str, arguments: list[str] | None) -> PerfOptions:
    """The words of a command line. Ends the process on a wrong one."""
    bandwidth = program == "mrc_write_bw"
    parser = _PerftestParser(
        prog=program,
        allow_abbrev=False,
        description=f"{what} of RDMA writes between two hosts of a lab: the server without a host, then the client "
        "with the server's. Options are perftest's.",
    )
    add = parser.add_argument
    add("servername", nargs="?", help="the server's host; without it, be the server")
    add("-p", "--port", type=int, default=18515, help="TCP port for the exchange (18515)")
    add(
        "-d", "--ib-dev", dest="device", metavar="NAME", help="the NIC, by its host (the one of this network namespace)"
    )
    add("-s", "--size", type=int, default=65536 if bandwidth else 2, help="bytes of a message")
    add("-n", "--iters", type=int, default=5000 if bandwidth else 1000, help="messages, of each queue pair")
    add("-a", "--all", dest="all_sizes", action="store_true", help=f"sizes from 2 to {SIZE_MAX}")
    add("-c", "--connection", choices=["RC"], default="RC", help="RC, the only kind")
    add("-F", "--CPU-freq", action="store_true", help="accepted; time is the clock's, not the processor's")
    add("--out_json", dest="json", action="store_true", help="print the rows as JSON")
    if bandwidth:
        add("-q", "--qp", dest="qps", type=int, default=1, help="queue pairs")
        add("-t", "--tx-depth", type=int, default=128, help="writes under way of each queue pair")
        add("-l", "--post_list", type=int, default=1, help="writes that are posted together")
        add("-b", "--bidirectional", action="store_true", help="both ends write; both rates are added")
        add("-D", "--duration", dest="duration_s", type=int, default=0, help="seconds, in place of --iters")
        add("--report_gbits", dest="gbits", action="store_true", help="Gb/s (10^9 bits) in place of MB/s (2^20 bytes)")
    else:
        add("-H", "--report-histogram", dest="histogram", action="store_true", help="print every latency, sorted")
    given = vars(parser.parse_args(arguments))
    values = {field.name: given.get(field.name, field.default) for field in fields(PerfOptions)}
    limits = {
        "--size": ("size", 1, 1 << 28),
        "--iters": ("iters", 1, 1 << 31),
        "--port": ("port", 1, 65535),
        "--qp": ("qps", 1, 128),
        "--tx-depth": ("tx_depth", 1, 4096),
        "--post-list": ("post_list", 1, 4096),
        "--duration": ("duration_s", 0, 86400),
    }
    for option, (name, low, high) in limits.items():
        if not low <= values[name] <= high:
            parser.error(f"{option} is {values[name]}; it must be from {low} to {high}")
    return PerfOptions(**{**values, "post_list": min(values["post_list"], values["tx_depth"])})
