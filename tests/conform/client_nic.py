"""MRC-Client's responder as a device: python client_nic.py CHECKOUT SOCKET FIXES

It has no memory, no completions and no requester, and answers writes only. FIXES are joined by commas, or "": `keyword`
lets it make a SACK at all (it names a field of CC_STATE that its own CC_STATE calls otherwise, 986ded2), `check` puts
the ICRC of RoCEv2 in place of its CRC, `number` sends SACKs to the tester's queue pair instead of its own number.
"""

import os
import select
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conform.device import SocketWire
from endpoint.nic.frame import seal

BTH = 62  # of a packet without an outer header
QPN = 0x101


class Client:
    def __init__(self, checkout: str, fixes: Sequence[str]) -> None:
        sys.path.insert(0, checkout)
        from core import mrc_responder  # type: ignore[import-not-found]

        self.fixes = fixes
        self.peer_qpn = 0
        self.raised: Counter[str] = Counter()
        self.responder = mrc_responder.MRCResponder()
        if "keyword" in fixes:
            state = mrc_responder.CCState

            def fixed(*, restore_cwnd: int, **values: Any) -> Any:
                return state(r_c=restore_cwnd, **values)

            mrc_responder.CCState = fixed

    def frame(self, port: int, data: bytes) -> bytes | None:
        """Its answer to a frame; none where its own code raises, which would end the thread that reads frames."""
        try:
            answer: bytes | None = self.responder.process_packet(data, f"port{port}")
        except Exception as error:
            self.raised[f"{type(error).__name__}: {error}"] += 1
            return None
        if not answer:
            return None
        body = bytearray(answer[BTH:-4])
        if "number" in self.fixes:
            body[5:8] = self.peer_qpn.to_bytes(3, "big")
        if "check" in self.fixes:
            return seal(answer[:BTH], bytes(body))
        return answer[:BTH] + bytes(body) + answer[-4:]

    def answer(self, line: str) -> str:
        word, _, rest = line.strip().partition(" ")
        given = dict(one.partition("=")[::2] for one in rest.split())
        if word == "hello":
            return "ok name=MRC-Client version=1"
        if word == "reset":
            self.responder.reset()
        elif word == "open":
            return f"ok qpn={QPN} va=0 rkey=1 bytes=131072"
        elif word == "connect":
            self.peer_qpn = int(given["qpn"])
        elif word == "read":
            return "ok hex=" + "00" * int(given["bytes"])  # no byte of a write is placed anywhere
        elif word == "completions":
            return "ok done="
        elif word != "receive":
            return "unsupported"
        return "ok"


def main(checkout: str, place: str, fixes: str) -> None:
    client, wire, held = Client(checkout, fixes.split(",")), SocketWire(Path(place)), b""
    while True:
        waiting: list[Any] = [0, *wire.files]
        ready = select.select(waiting, [], [])[0]
        for one in wire.files:
            if one in ready:
                port, data = wire.receive(one)
                if answer := client.frame(port, data):
                    wire.send(port, answer)
        if 0 in ready:
            if not (data := os.read(0, 1 << 16)):
                print(*client.raised.items(), sep="\n", file=sys.stderr)
                return
            *lines, held = (held + data).split(b"\n")
            for line in lines:
                sys.stdout.write(client.answer(line.decode()) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except EOFError:
        sys.exit(0)
