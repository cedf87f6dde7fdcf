"""An SSH server on loopback for one user, who may run commands: `python -m tests.helpers.ssh_server FOLDER`.

FOLDER gets the client's key, `known_hosts` and `config`, in which the host `node` is this server. A line on standard
output says that the server listens. Ends with its standard input.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import asyncssh

CONFIG = """Host node
  HostName 127.0.0.1
  Port {port}
  User tester
  IdentityFile {folder}/key
  UserKnownHostsFile {folder}/known_hosts
"""


async def run_command(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """What sshd does: a shell with the client's command, its streams those of the connection."""
    client, server = (process.get_extra_info(name)[:2] for name in ("peername", "sockname"))
    environment = {**os.environ, "SSH_CONNECTION": f"{client[0]} {client[1]} {server[0]} {server[1]}"}
    shell = await asyncio.create_subprocess_shell(
        process.command or "true", stdin=-1, stdout=-1, stderr=-1, env=environment
    )
    await process.redirect(shell.stdin, shell.stdout, shell.stderr)
    ended = asyncio.create_task(shell.wait())
    hung_up = asyncio.create_task(process.channel.wait_closed())
    await asyncio.wait({ended, hung_up}, return_when=asyncio.FIRST_COMPLETED)
    if shell.returncode is None:
        shell.terminate()
    process.exit(await shell.wait())


async def serve(folder: Path) -> None:
    """Until standard input ends."""
    client, host = asyncssh.generate_private_key("ssh-ed25519"), asyncssh.generate_private_key("ssh-ed25519")
    client.write_private_key(folder / "key")
    client.write_public_key(folder / "authorized")
    server = await asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[host], authorized_client_keys=str(folder / "authorized"),
        process_factory=run_command, encoding=None,
    )  # fmt: skip
    port = server.get_port()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host.export_public_key().decode()}")
    (folder / "config").write_text(CONFIG.format(port=port, folder=folder))
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
