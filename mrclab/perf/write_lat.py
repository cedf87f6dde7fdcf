"""`mrc_write_lat`: half the round trip of a write, as perftest's ib_write_lat measures it.

perftest polls the last byte of the message in memory. Over many paths the last byte may be there first, so each message
here is a write with immediate, whose completion says that all of it has arrived.
"""

import sys
import time

from common import latency
from mrclab.context import Context
from mrclab.cq import WCOpcode
from mrclab.perf import table
from mrclab.perf.exchange import Exchange
from mrclab.perf.options import PerfOptions
from mrclab.perf.setup import TestEnd, facts
from mrclab.perf.setup import main as perf_main
from mrclab.qp import SendWR

RECEIVES = 128


class PingPong:
    """The client serves; both ends keep receives posted."""

    def __init__(self, end: TestEnd) -> None:
        self._end = end
        self._receives = RECEIVES
        self._arrived = self._sent = 0

    def send(self, size: int) -> None:
        """Receives first: the answer must find one."""
        if self._receives <= RECEIVES // 2:
            self._end.qps[0].post_recv(*[0] * (RECEIVES - self._receives))
            self._receives = RECEIVES
        peer = self._end.peer["mr"]
        self._end.qps[0].post_send(SendWR(0, self._end.mr, 0, size, peer["addr"], peer["rkey"], imm_data=0))
        self._sent += 1

    def take(self) -> None:
        """Wait for a message of the peer's."""
        while not self._arrived:
            for completion in self._end.completions():
                if completion.opcode is WCOpcode.RECV_RDMA_WITH_IMM:
                    self._arrived += 1
                else:
                    self._sent -= 1
        self._arrived -= 1
        self._receives -= 1

    def settle(self) -> None:
        """Wait until all messages of this end are acknowledged."""
        while self._sent:
            self._sent -= len(self._end.completions())


def run(context: Context, exchange: Exchange, options: PerfOptions) -> None:
    """Both ends; the client reports."""
    end = TestEnd(context, exchange, options, depth=RECEIVES, receives=RECEIVES)
    client = options.servername is not None
    table.head("RDMA_Write Latency Test", facts(context, options), latency.COLUMNS, as_json=options.json)
    game = PingPong(end)
    for size in options.sizes():
        exchange.swap({})
        latencies_us = []
        for _ in range(options.iters):
            if client:
                started_ns = time.perf_counter_ns()
                game.send(size)
                game.take()
                latencies_us.append((time.perf_counter_ns() - started_ns) / 2e3)
            else:
                game.take()
                game.send(size)
        game.settle()
        mine = latency.row(size, latencies_us) if client else ()
        other = exchange.swap(mine)
        table.row(mine or other, latency.COLUMNS, as_json=options.json)
        if options.histogram and client:
            print("\n".join(f"{latency_us:.2f}" for latency_us in sorted(latencies_us)))
    table.foot(as_json=options.json)


def main(arguments: list[str] | None = None) -> int:
    return perf_main("mrc_write_lat", "Latency", arguments, run)


if __name__ == "__main__":
    sys.exit(main())
