"""A host by the official client in Python: calls a tool of the program whose command line it is given, tells what it heard."""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

STORE, ANSWER, TOOL, ARGUMENTS, *COMMAND = sys.argv[1:]


async def main():
    heard, asked = [], []

    async def progress(done, total, message):
        heard.append([done, message])

    async def answer(context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": ANSWER})

    environment = {"POLYLOGUE_STORE": STORE}
    server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=environment)
    async with Client(server, elicitation_callback=answer if ANSWER else None) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool(TOOL, json.loads(ARGUMENTS), progress_callback=progress)
        print(json.dumps({
            "tools": {tool.name: tool.input_schema for tool in tools},
            "texts": [block.text for block in result.content],
            "value": result.structured_content,
            "is_error": result.is_error,
            "heard": heard,
            "asked": asked,
        }))


asyncio.run(main())
