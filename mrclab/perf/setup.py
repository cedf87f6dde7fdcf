"""The two ends of a test: memory and queue pairs, connected with the other end's."""

from collections.abc import Callable, Mapping
from typing import Any

from common.outcome import error_line
from common.terminal.standard_streams import write_error
from mrclab.context import Context
from mrclab.cq import WC, WCStatus
from mrclab.errors import MRCError
from mrclab.perf.exchange import Exchange, PeerGoneError
from mrclab.perf.options import PerfOptions, parse


class TestEnd:
    """One end: `qps` queue pairs with `depth` places, and `slots` times the largest size of memory for each."""

    def __init__(
        self, context: Context, exchange: Exchange, options: PerfOptions, *, depth: int, receives: int, slots: int = 1
    ) -> None:
        self.options = options
        self.context = context
        self.exchange = exchange
        largest = max(options.sizes())
        self.mr = context.reg_mr(largest * options.qps * slots)
        self.cq = context.create_cq(options.qps * (depth + receives))
        self.qps = [
            context.create_qp(self.cq, max_send_wr=depth, max_recv_wr=max(1, receives)) for _ in range(options.qps)
        ]
        for qp in self.qps:
            qp.post_recv(*range(receives))
        self.peer = self._meet()

    def _meet(self) -> Mapping[str, Any]:
        mine = {"options": self.options.shared(), "mr": self.mr.info(), "qps": [qp.info() for qp in self.qps]}
        peer = self.exchange.swap(mine)
        try:
            if peer["options"] != mine["options"]:
                theirs, ours = peer["options"], mine["options"]
                raise PeerGoneError(f"the other end was started with {theirs}, this one with {ours}")
            for qp, info in zip(self.qps, peer["qps"], strict=True):
                qp.connect(info)
        finally:
            self.exchange.swap({})  # both ends are ready to receive, or have given up
        answer: Mapping[str, Any] = peer
        return answer

    def completions(self) -> list[WC]:
        """At least one, all good. Raises RuntimeError with the status of one that is not."""
        completions = self.exchange.wait(self.context, self.cq)
        for completion in completions:
            if completion.status is not WCStatus.SUCCESS:
                raise RuntimeError(f"a write ended with {completion.status.value}")
        return completions


def facts(context: Context, options: PerfOptions) -> list[tuple[str, object]]:
    """The lines above a test's rows."""
    device = context.query_device()
    rate = sum(port.rate_bps for port in device.ports) / 1e6
    return [
        ("Device", device.host),
        ("Number of qps", options.qps),
        ("Transport type", device.transport.upper()),
        ("Connection type", "RC"),
        ("Mtu", f"{device.pmtu}[B]"),
        ("Ports", f"{len(device.ports)}, {rate:g} Mb/s together"),
    ]


def main(
    program: str, what: str, arguments: list[str] | None, run: Callable[[Context, Exchange, PerfOptions], None]
) -> int:
    """Parse, open the NIC, meet the other end, run. Exit status 1 with a sentence when something fails."""
    options = parse(program, what, arguments)
    try:
        # The NIC first: a process without one is in no host, and must not listen on a port there.
        with Context(options.device, program=program) as context:
            if options.servername is None and not options.json:
                print(f"waiting for a client on {context.name}, port {options.port}", flush=True)
            with Exchange(options.servername, options.port) as exchange:
                run(context, exchange, options)
    except KeyboardInterrupt:
        return 130
    except (MRCError, OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        write_error(f"{program}: {error_line(error)}")
        return 1
    return 0
