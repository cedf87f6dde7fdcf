"""How long hosts were ready to run and had no processor.

How busy the machine is does not show it: a process of low priority counts as none, and may still run for milliseconds
before it gives way.
"""

from __future__ import annotations

from collections import defaultdict

from judging.arrays import Floats, np
from judging.run import Run, Span


def by_host(run: Run) -> list[tuple[Floats, Floats]]:
    """Of each agent that can tell: instants, and how long it had waited up to each, ns. Kept with the run."""
    if run.waits is None:
        found: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
        for line in run.kind("cpu"):
            if "wait_ns" in line:
                times, waited = found[line["node"]]
                times.append(float(line["t_ns"]))
                waited.append(float(line["wait_ns"]))
        run.waits = [(np.array(times), np.array(waited)) for times, waited in found.values()]
    return run.waits


def waited_ns(run: Run, span: Span) -> list[float]:
    """How long each of these agents waited in a span."""
    edges = np.array([span.start_ns, span.stop_ns], dtype=float)
    return [float(np.diff(np.interp(edges, *host))[0]) for host in by_host(run)]
