"""The Python client of MCP against `polylogue serve`: both kinds of the protocol."""

import asyncio
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

URL, TOKEN = sys.argv[1:]
TEAMS = sorted(sys.stdin.read().split())


async def answer(context, params):
    assert params.message.startswith("Pat is asked: "), params
    return ElicitResult(action="accept", content={"answer": "I am stuck."})


async def talk(mode):
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)
    client = Client(streamable_http_client(URL, http_client=http), mode=mode, elicitation_callback=answer)
    async with client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == TEAMS, names
        progress = []

        async def on_progress(value, total, message):
            progress.append((value, message))

        result = await client.call_tool("test_tool_with_progress", {}, progress_callback=on_progress)
        assert not result.is_error and result.content[0].text == "three", result
        assert progress == [(1, "Ann: one"), (2, "Bob: two"), (3, "Cy: three")], progress
        value = result.structured_content
        assert value["state"] == "done" and value["result"] == "three", value
        asked = await client.call_tool("test_elicitation", {})
        assert asked.structured_content["result"] == "state-ok", asked
        limited = await client.call_tool("test_error_handling", {})
        assert limited.is_error and limited.structured_content["state"] == "limit", limited
    silent = Client(streamable_http_client(URL, http_client=httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)), mode=mode)
    async with silent:
        waiting = (await silent.call_tool("test_elicitation", {})).structured_content
        assert waiting["state"] == "waiting" and waiting["questions"][0]["who"] == "Pat", waiting
        more = {"conversation": waiting["conversation"], "message": "I am stuck."}
        done = (await silent.call_tool("test_elicitation", more)).structured_content
        assert done["state"] == "done" and done["conversation"] == waiting["conversation"], done


async def main():
    for mode in ["2026-07-28", "auto", "legacy"]:
        await talk(mode)
        print(f"python mcp, {mode}: lists, calls, progress, question, waiting")


asyncio.run(main())
