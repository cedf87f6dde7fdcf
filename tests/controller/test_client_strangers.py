"""The controller gives its entries to no switch process of another user, and its shell runs no other user's profile."""

import os
import pwd
import tempfile
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

import pytest

from controller import cli
from controller.client import Address, ClientError, GrpcChannels
from tests.helpers.stranger import socket_of_a_stranger


@pytest.mark.root
def test_no_channel_is_made_to_a_stranger() -> None:
    with tempfile.TemporaryDirectory(prefix="s-") as folder, GrpcChannels() as channels:
        Path(folder).chmod(0o1777)
        with socket_of_a_stranger(f"{folder}/grpc"), pytest.raises(ClientError, match="user 65534 listens"):
            channels.get(f"unix:{folder}/grpc")


@pytest.mark.root
def test_roots_shell_runs_no_profile_of_the_user_who_called_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython runs `profile_default/startup/*.py` below IPYTHONDIR or HOME, which `sudo -E` keeps."""
    became: list[Mapping[str, str]] = []
    monkeypatch.setattr(os, "execve", lambda path, words, environment: became.append(environment))
    monkeypatch.setattr(cli, "shell_python", lambda: Path("/bin/true"))
    monkeypatch.setattr(cli, "_fabric", lambda options: (None, {"p0l0": Address("localhost:1", 1)}))
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("IPYTHONDIR", "/home/somebody/own")
    cli.run_shell(Namespace(switch="p0l0", words=[]))
    assert (became[0]["HOME"], "IPYTHONDIR" in became[0]) == (pwd.getpwuid(0).pw_dir, False)
