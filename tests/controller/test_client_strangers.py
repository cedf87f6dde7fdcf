"""The controller gives its entries to no switch process of another user."""

import tempfile
from pathlib import Path

import pytest

from controller.client import ClientError, GrpcChannels
from tests.helpers.stranger import socket_of_a_stranger


@pytest.mark.root
def test_no_channel_is_made_to_a_stranger() -> None:
    with tempfile.TemporaryDirectory(prefix="s-") as folder, GrpcChannels() as channels:
        Path(folder).chmod(0o1777)
        with socket_of_a_stranger(f"{folder}/grpc"), pytest.raises(ClientError, match="user 65534 listens"):
            channels.get(f"unix:{folder}/grpc")
