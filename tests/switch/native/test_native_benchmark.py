"""What the native engine is measured with follows the runtime; what it measures is never asserted here."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.switch_pps import build_tool


def test_the_generator_and_bare_forwarder_are_built_from_the_runtimes_sockets(tmp_path: Path) -> None:
    tool = build_tool(tmp_path)
    words = (str(tool), "forward", "/nowhere/netns", "s1", "s2")
    done = subprocess.run(words, capture_output=True, text=True, timeout=10)
    assert done.returncode == 1
    assert done.stderr == "s1: cannot open the network namespace: No such file or directory\n"
