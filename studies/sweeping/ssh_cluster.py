"""A Dask cluster for one sweep on hosts that ssh reaches: encrypted, authenticated, bound to one address per host.

Whoever connects to a Dask scheduler or worker runs code as its user. So each cluster has a key that exists only for
the cluster: TLS in both directions, and a peer without the key is refused. Dask's own SSHCluster offers no way to hand
out a key but the command line, which every user of a host can read; here the key goes through ssh's standard input
into a folder that only its user may enter, and that a waiting shell removes when the connection ends, however it ends.
"""

from __future__ import annotations

import asyncio
import importlib
import secrets
import shlex
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from common.interpreter import python

WAIT_S = 30.0
KEEPER = """umask 077; d={folder}; trap 'rm -rf "$d"' EXIT HUP INT TERM
mkdir -p "$d" && head -c {size} >"$d/key.pem" && echo "ready $SSH_CONNECTION" && cat >/dev/null"""
"""The shell on each host: keeps the key for as long as its connection lasts, and tells the address of the host."""


@contextmanager
def ssh_cluster(hosts: Sequence[str]) -> Iterator[Any]:
    """A scheduler on the first host and a worker of one thread on each; all end with the context."""
    distributed, config = importlib.import_module("distributed"), importlib.import_module("dask.config")
    ssh = importlib.import_module("distributed.deploy.ssh")
    security = distributed.Security.temporary()
    pem = (security.tls_client_key + security.tls_ca_file).encode()
    folder = f"/tmp/mrclab-cluster-{secrets.token_hex(16)}"
    with _key_on(hosts, pem, folder) as addresses, config.set(_tls(f"{folder}/key.pem")):
        # What is imported comes from the project, never from the folder in which ssh begins.
        common = {"connect_options": {}, "remote_python": shlex.join(python())}

        def at(host: str, **options: Any) -> dict[str, Any]:
            return {**common, "address": host, "kwargs": {"host": addresses[host], "dashboard": False, **options}}

        scheduler = {"cls": ssh.Scheduler, "options": at(hosts[0])}
        workers = {number: {"cls": ssh.Worker, "options": at(host, nthreads=1)} for number, host in enumerate(hosts)}
        with distributed.SpecCluster(workers, scheduler, name="SSHCluster", security=security) as cluster:
            yield cluster


def _tls(path: str) -> dict[str, Any]:
    """Dask's configuration, which its processes inherit: one file is authority, certificate and key of all roles."""
    parts = [f"{role}.{part}" for role in ("scheduler", "worker", "client") for part in ("key", "cert")]
    return {
        "distributed.comm.require-encryption": True,
        "distributed.comm.default-scheme": "tls",
        "distributed.comm.tls.ca-file": path,
        **{f"distributed.comm.tls.{part}": path for part in parts},
    }


@contextmanager
def _key_on(hosts: Sequence[str], pem: bytes, folder: str) -> Iterator[dict[str, str]]:
    """Each host's own address, while the key lies in `folder` on all of them."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="ssh-keys", daemon=True)
    thread.start()
    connections: list[Any] = []
    try:
        addresses = {}
        for host in dict.fromkeys(hosts):
            hand_over = _hand_over(host, pem, folder, connections)
            addresses[host] = asyncio.run_coroutine_threadsafe(hand_over, loop).result(WAIT_S)
        yield addresses
    finally:
        asyncio.run_coroutine_threadsafe(_close(connections), loop).result(WAIT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _hand_over(host: str, pem: bytes, folder: str, connections: list[Any]) -> str:
    """Start the keeper on a host. The host's address, as the host itself sees it (sshd sets SSH_CONNECTION)."""
    asyncssh = importlib.import_module("asyncssh")
    connection = await asyncssh.connect(host)
    connections.append(connection)
    command = KEEPER.format(folder=shlex.quote(folder), size=len(pem))
    keeper = await connection.create_process(command, encoding=None)
    keeper.stdin.write(pem)
    words = (await keeper.stdout.readline()).decode().split()
    if words[:1] != ["ready"]:
        raise OSError(f"{host}: the cluster's key could not be written to {folder}")
    return str(words[3]) if len(words) > 3 else str(connection.get_extra_info("peername")[0])


async def _close(connections: list[Any]) -> None:
    for connection in connections:
        connection.close()
        await connection.wait_closed()
