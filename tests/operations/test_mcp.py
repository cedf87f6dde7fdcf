"""`./lab mcp` as an agent has it: the SDK's own client, over standard input and output."""

import json
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cli.main import main
from operations.commands.incident import SECRET_SEEDS
from operations.incident.draw import Incident, draw

anyio = pytest.importorskip("anyio")
mcp = pytest.importorskip("mcp.client", reason="needs the SDK of the Model Context Protocol, from locks/mcp.txt")
SEED = 4
CHANGE = """
name = "a leaf"
plan = "tiny"
seconds = 2
[fabric]
planes = 1
[[step]]
do = "replace"
target = "p0l0"
at_s = 0.5
for_s = 1
"""
Call = Callable[..., Awaitable[Any]]


def session(runs: Path, act: Callable[[Any, Call], Awaitable[None]], seed: int | None = SEED) -> None:
    """Let `act` call tools of a server; it fails where a tool refuses, unless it asks for the refusal."""
    from mcp.client.stdio import StdioServerParameters, stdio_client

    words = ["-P", "-m", "cli", "mcp", "--runs", str(runs), *([] if seed is None else ["--seed", str(seed)])]
    environment = {"PYTHONPATH": ":".join(sys.path), "MRCLAB_COMPILED": "off"}

    async def run() -> None:
        server = stdio_client(StdioServerParameters(command=sys.executable, args=words, env=environment))
        async with mcp.Client(server) as client:

            async def call(tool: str, refused: bool = False, **arguments: Any) -> Any:
                done = await client.call_tool(tool, arguments)
                assert done.is_error == refused, done.content
                return done.content[0].text if refused else done.structured_content

            await act(client, call)

    anyio.run(run)


def drawn(number: int, level: int, seed: int = SEED) -> Incident:
    """The incident that a server with this seed builds at its call `number` of `start`, from 0."""
    random = Random(seed)
    return draw([random.randrange(SECRET_SEEDS) for _ in range(number + 1)][number], level)


def test_an_agent_reads_what_the_tools_are_and_is_refused_in_words(tmp_path: Path) -> None:
    async def act(client: Any, call: Call) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"start", "counters", "trace", "answer", "abstain", "rehearse"} <= set(tools)
        assert "exec" not in tools
        assert all(tool.description for tool in tools.values())
        assert tools["counters"].input_schema["properties"]["watch"]["type"] == "number"
        assert "no incident is under way" in await call("inspect", refused=True)
        assert "--level must be between 1 and 5 (got 9)" in await call("start", refused=True, level=9)
        assert "change: must be TOML" in await call("rehearse", refused=True, change='name = "x"\n\n\n]')

    session(tmp_path, act)


def test_an_agent_finds_a_fault_and_abstains_from_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The server tells nothing of what is hidden before the end, and each answer's score is what the rules say."""
    (hidden,) = drawn(0, 1).hidden

    async def act(client: Any, call: Call) -> None:
        briefing = await call("start", level=1)
        assert hidden.kind in {one["kind"] for one in (await call("kinds"))["result"]}
        seen = [briefing, await call("inspect", node="p0l0"), await call("counters", target="p0l0-p0s0", watch=1)]
        assert "seed" not in json.dumps(seen)
        assert "no kind 'bad-luck'" in await call(
            "answer", refused=True, faults=[{"component": "h0", "kind": "bad-luck"}]
        )
        found = await call("answer", faults=[{"component": hidden.component, "kind": hidden.kind}], because="seen")
        assert (found["verdict"], found["net"], found["commands"]) == ("right", 1.0, 2)
        await call("start", level=1)
        given_up = await call("abstain")
        assert (given_up["verdict"], given_up["net"], given_up["points"]) == ("given up", 0.0, 0.0)

    session(tmp_path, act)
    assert main(["incident", "scores", str(tmp_path)]) == 0
    assert re.search(f"{tmp_path.name}: 1 of 2 points, net score [+]1, .* 2 commands", capsys.readouterr().out)


def test_a_wrong_answer_costs_what_a_right_one_earns(tmp_path: Path) -> None:
    (hidden,) = drawn(0, 1).hidden
    elsewhere = {"component": "h0.p0" if not hidden.component.startswith("h0") else "h3.p1", "kind": "nic-port-down"}

    async def act(client: Any, call: Call) -> None:
        await call("start")
        assert (await call("answer", faults=[elsewhere]))["net"] == -1.0
        await call("start")
        assert (await call("answer", faults=[]))["net"] == -1.0

    session(tmp_path, act)


@pytest.mark.slow
def test_an_agent_rehearses_a_change_and_hears_of_each_run(tmp_path: Path) -> None:
    heard: list[float] = []

    async def act(client: Any, call: Call) -> None:
        async def progress(done: float, total: float | None, message: str | None) -> None:
            heard.append(done)
            assert total == 2

        found = await client.call_tool("rehearse", {"change": CHANGE, "seeds": 2}, progress_callback=progress)
        (change,) = found.structured_content["changes"]
        assert change["verdict"] == "not safe"
        assert change["outage_s"] == 1
        assert Path(found.structured_content["page"]).exists()

    session(tmp_path, act)
    assert heard == [1, 2]
