"""`mrc_write_bw`: how fast one host writes to another, as perftest's ib_write_bw measures it."""

import sys
import time
from collections import Counter
from typing import Any

from mrclab.context import Context
from mrclab.perf import table
from mrclab.perf.exchange import Exchange
from mrclab.perf.options import PerfOptions
from mrclab.perf.setup import TestEnd, facts
from mrclab.perf.setup import main as perf_main
from mrclab.qp import SendWR


def run(context: Context, exchange: Exchange, options: PerfOptions) -> None:
    """Both ends; the client reports, in a bidirectional test the sum of both."""
    end = TestEnd(context, exchange, options, depth=options.tx_depth, receives=0)
    writes = options.servername is not None or options.bidirectional
    columns = table.bandwidth_columns(options)
    about = [*facts(context, options), ("TX depth", options.tx_depth)]
    title = "RDMA_Write Bidirectional BW Test" if options.bidirectional else "RDMA_Write BW Test"
    table.head(title, about, columns, as_json=options.json)
    for size in options.sizes():
        exchange.swap({})
        times = _write(end, size) if writes else []
        mine: dict[str, Any] = {"messages": len(times), "seconds": times[-1] if times else 0.0}
        other = exchange.swap(mine)
        measured = [part for part in (mine, other) if part["messages"]]
        rate = sum(part["messages"] / part["seconds"] for part in measured)
        count = sum(part["messages"] for part in measured)
        peak_s = None if options.duration_s or options.bidirectional else _peak_s(times, options)
        table.row(table.bandwidth_row(options, size, count, 1 / rate, peak_s), columns, as_json=options.json)
    table.foot(as_json=options.json)


def _write(end: TestEnd, size: int) -> list[float]:
    """Keep every queue pair's places taken; when each write completed, in seconds since the first was posted."""
    options = end.options
    left = {qp.qp_num: 0 if options.duration_s else options.iters for qp in end.qps}
    flying: Counter[int] = Counter()
    times: list[float] = []
    started_s = time.perf_counter()
    stop_s = started_s + options.duration_s
    place, rkey, stride = end.peer["mr"]["addr"], end.peer["mr"]["rkey"], max(options.sizes())
    while True:
        over = bool(options.duration_s) and time.perf_counter() >= stop_s
        for index, qp in enumerate(end.qps):
            room = options.tx_depth - flying[qp.qp_num]
            count = room if options.duration_s else min(room, left[qp.qp_num])
            if over or count < min(options.post_list, left[qp.qp_num] or options.post_list):
                continue
            offset = index * stride
            qp.post_send(*[SendWR(0, end.mr, offset, size, place + offset, rkey)] * count)
            flying[qp.qp_num] += count
            left[qp.qp_num] -= count
        if not flying.total():
            return times
        completions = end.completions()
        now_s = time.perf_counter() - started_s
        for completion in completions:
            flying[completion.qp_num] -= 1
            times.append(now_s)


def _peak_s(times: list[float], options: PerfOptions) -> float | None:
    """Seconds a message over the best stretch of as many messages as may be under way."""
    window = min(options.tx_depth * options.qps, max(1, len(times) // 2))
    stretches = [late - early for early, late in zip(times, times[window:], strict=False) if late > early]
    return min(stretches) / window if stretches else None


def main(arguments: list[str] | None = None) -> int:
    return perf_main("mrc_write_bw", "Bandwidth", arguments, run)


if __name__ == "__main__":
    sys.exit(main())
