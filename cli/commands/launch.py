"""`mrclab launch`: one process per host, as the ranks of a job that use MRC, such as a PyTorch script."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cli import ranks
from cli.command_table import add
from cli.host_names import parse_hosts
from cli.root import need_root
from common.scratch import Scratch
from topo import Host
from topo.address import host_address
from topo.emulation import Lab, labname

ROOT = Path(__file__).resolve().parents[2]
PORT = 29500  # PyTorch's usual one
LIBRARY = ("mrclab", "common")
"""The packages that a program imports; no other of the lab's is on its path."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    launch = add(subparsers, "launch", launch_command, __file__)
    launch.add_argument("--ranks", required=True, metavar="HOSTS", help="such as h0..h7 or h0,h2,h4, rank 0 first")
    launch.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    labname.add_option(launch)


def launch_command(arguments: argparse.Namespace) -> int:
    from cli.traffic import Traffic
    from running.view import RealLab

    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if not words or words[0].startswith("-"):
        raise ValueError("launch --ranks HOSTS must be followed by a command, such as -- python3 train.py")
    lab = Lab.attach()
    hosts = parse_hosts(lab.plan, arguments.ranks)
    need_root("launch enters network namespaces")
    if shutil.which(words[0]) is None:
        raise FileNotFoundError(f"launch: there is no command {words[0]!r} on PATH")
    with Traffic(RealLab(lab)) as traffic:
        traffic.ensure_agents(None, {}, 1)
    with job_folder() as folder:
        return ranks.run(list(ranks_of(lab, hosts, folder)), words, _write)


def ranks_of(lab: Lab, hosts: Sequence[Host], folder: Path) -> Iterator[ranks.RankProcess]:
    for number, host in enumerate(hosts):
        environment = {
            "RANK": str(number),
            "LOCAL_RANK": "0",
            "WORLD_SIZE": str(len(hosts)),
            "MASTER_ADDR": str(host_address(lab.plan, hosts[0])),
            "MASTER_PORT": str(PORT),
            "MRCLAB_MEET": str(folder / "meet"),
            "MRCLAB_RANKS": ",".join(host.name for host in hosts),
            "PYTHONPATH": str(folder / "library"),
        }
        yield ranks.RankProcess(host.name, ["nsenter", f"--net={lab.netns(host)}"], environment)


@contextmanager
def job_folder() -> Iterator[Path]:
    """A folder of the job's own: where its ranks meet, and the packages that programs may import."""
    with Scratch("mrclab-launch-") as folder:
        library = folder / "library"
        about = library / "mrclab-launch.dist-info"
        about.mkdir(parents=True)
        for package in LIBRARY:
            (library / package).symlink_to(ROOT / package)
        # PyTorch 2.5 and newer looks for this entry point, so that a script need not import mrclab.torch.
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mrclab-launch\nVersion: 0\n")
        (about / "entry_points.txt").write_text("[torch.backends]\nmrclab = mrclab.torch:autoload\n")
        yield folder


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
