"""Goes through all operations of a schedule once: does each one start, and how long is the longest chain?"""

from __future__ import annotations

from array import array

from schedules import operation
from schedules.edges import Edges, Ints

NOMINAL_BPS = 100e9
NOMINAL_DELAY_NS = 5_000
"""For the length of the longest chain: the rate of a host and the delay of a message."""
CHAIN_NS_MAX = (1 << 63) - 1
GONE_THROUGH = -1


def walk(
    kind: array[int], amount: array[int], partner: array[int], need: array[int], successors: Edges, starts: Edges
) -> tuple[int, int]:
    """How many operations never start, and the end of the last one, ns, where each takes its nominal time.

    `need` is used up: it is above 0 for operations that never start, and `GONE_THROUGH` for the others. OverflowError
    for an end beyond `CHAIN_NS_MAX`.
    """
    next_at, following = indexed(successors.start), indexed(successors.after)
    start_at, starting = indexed(starts.start), indexed(starts.after)
    ready_ns = array("q", bytes(8 * len(kind)))
    turned: dict[int, int] = {}
    for number in range(len(kind)):
        if kind[number] == operation.RECV:
            need[number] += 1
    at_once = (number for number in range(len(kind)) if not need[number])  # no list: it may be all of them
    stack: list[int] = []
    seen = latest_ns = 0
    while True:
        number = stack.pop() if stack else next(at_once, -1)
        if number < 0:
            break
        need[number] = GONE_THROUGH
        seen += 1
        began_ns = ready_ns[number]
        cost_ns = amount[number] if kind[number] == operation.CALC else 0
        ended_ns = max(began_ns, amount[number]) if kind[number] == operation.WAIT else began_ns + cost_ns
        reached = [(after, began_ns) for after in starting[start_at[number] : start_at[number + 1]]]
        if kind[number] == operation.SEND:
            arrived_ns = began_ns + NOMINAL_DELAY_NS + round(amount[number] * 8e9 / NOMINAL_BPS)
            reached.append((partner[number], arrived_ns))
            ended_ns = arrived_ns + NOMINAL_DELAY_NS  # the acknowledgement is in
        latest_ns = max(latest_ns, ended_ns)
        reached += [(after, ended_ns) for after in following[next_at[number] : next_at[number + 1]]]
        for after, at_ns in reached:
            target = after
            if kind[after] == operation.TURN:
                place = next_at[after] + turned.get(after, 0)
                turned[after] = turned.get(after, 0) + 1
                need[after] -= 1
                if not need[after]:
                    need[after] = GONE_THROUGH
                    seen += 1
                if place >= next_at[after + 1]:
                    continue
                target = following[place]
            ready_ns[target] = max(ready_ns[target], at_ns)
            need[target] -= 1
            if not need[target]:
                stack.append(target)
    if latest_ns > CHAIN_NS_MAX:
        raise OverflowError
    return len(kind) - seen, latest_ns


def indexed(column: Ints) -> memoryview[int]:
    """A column whose items are Python's integers, without a copy."""
    return column.data
