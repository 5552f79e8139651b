"""A small MCP server of the standard library alone: a store of spare parts, with what is left of each.

It speaks the protocol over its input and output, a message of JSON-RPC a line. For real servers there are libraries.
"""

import json
import sys

STOCK = {
    "B-12": {"name": "brake pad, front", "left": 6},
    "B-14": {"name": "brake pad, rear", "left": 1},
    "C-03": {"name": "chain, 114 links", "left": 2},
}


def find_part(query):
    found = [
        {"part": part, **entry} for part, entry in STOCK.items() if query.lower() in entry["name"]
    ]
    return {"found": found}


def reserve(part, count):
    if part not in STOCK:
        raise ValueError(f"there is no part `{part}`; find_part knows them")
    if STOCK[part]["left"] < count:
        raise ValueError(f"only {STOCK[part]['left']} of `{part}` are left")
    STOCK[part]["left"] -= count
    return {"part": part, "reserved": count, "left": STOCK[part]["left"]}


TEXT, COUNT = {"type": "string"}, {"type": "integer", "minimum": 1}

TOOLS = {
    "find_part": {
        "call": find_part,
        "description": "Finds parts by a word of their names: their numbers, and how many are left.",
        "inputSchema": {"type": "object", "properties": {"query": TEXT}, "required": ["query"]},
        "annotations": {"readOnlyHint": True},
    },
    "reserve": {
        "call": reserve,
        "description": "Takes so many of a part out of the store.",
        "inputSchema": {
            "type": "object",
            "properties": {"part": TEXT, "count": COUNT},
            "required": ["part", "count"],
        },
    },
}


def call(name, arguments):
    try:
        value = TOOLS[name]["call"](**arguments)
    except (KeyError, TypeError, ValueError) as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    return {"content": [{"type": "text", "text": json.dumps(value)}]}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "parts", "version": "1"},
        }
    if method == "tools/list":
        about = {name: {key: tool[key] for key in tool if key != "call"} for name, tool in TOOLS.items()}
        return {"tools": [{"name": name, **tool} for name, tool in about.items()]}
    if method == "tools/call":
        return call(params["name"], params.get("arguments", {}))
    return {}


for line in sys.stdin:
    request = json.loads(line)
    # Notes without an `id` want no answer.
    if "id" in request and "method" in request:
        result = answer(request["method"], request.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
