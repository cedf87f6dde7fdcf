"""The process that keeps an incident: it alone knows what is hidden. It ends with the answer as well."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from operations.incident import page
from operations.incident.draw import draw
from operations.incident.score import Named
from operations.incident.session import IncidentSession
from running import RunDirectory
from running.view import Keeper, keep
from topo.planfile import parse_document


class Server(Keeper):
    """Answers requests for one session until it is over."""

    def __init__(self, session: IncidentSession, loop: asyncio.AbstractEventLoop | None = None) -> None:
        super().__init__(session.directory.path, session.close, loop)
        self._session = session
        self.operations = {"do": self._do, "status": self._status, "answer": self._answer, "end": self._end}

    def _do(self, request: Mapping[str, Any]) -> dict[str, Any]:
        arguments = request.get("arguments")
        if not isinstance(arguments, dict):
            raise ValueError(f"arguments must be an object (got {arguments!r})")
        result = self._session.do(str(request.get("tool")), arguments, str(request.get("words", "")))
        return {**self._used(), "result": result}

    def _used(self) -> dict[str, Any]:
        return {"lab_s": self._session.used_s, "commands": len(self._session.asked)}

    def _status(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._session.status()

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        named = request.get("named")
        if not isinstance(named, list) or not all(isinstance(word, str) for word in named):
            raise ValueError(f"named must be a list of components and kinds (got {named!r})")
        return self._finished(self._session.parsed(named), str(request.get("because", "")))

    def _end(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._finished(None, "")

    def _finished(self, named: Sequence[Named] | None, because: str) -> dict[str, Any]:
        try:
            return page.finished(self._session, named, because)
        finally:
            if self._session.over:  # also when its page could not be written: there is no lab to ask any more
                self.over()


def make_server(asked: Mapping[str, Any]) -> Server:
    """The lab of the incident that was asked for, up to the call. ValueError or RuntimeError when it cannot be."""
    directory = RunDirectory(Path(asked["folder"]))
    plan = parse_document(asked["plan"]) if asked.get("plan") else None
    drawn = draw(int(asked["seed"]), int(asked["level"]), plan)
    return Server(IncidentSession(drawn, directory, world=asked["world"]))


if __name__ == "__main__":
    sys.exit(keep(make_server))
