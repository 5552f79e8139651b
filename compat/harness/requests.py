"""Requests for completions as lines of text, alike for both protocols and both sides."""

import json

# Who asks for the next speaker in AutoGen's groups: no participant.
SELECTOR = "checking_agent"


def lines(recorded: list[dict], merged: bool, named: bool) -> list[str]:
    """All requests; what the original sends is told as Polylogue would send it.

    `merged`: messages of one role in a row are one. `named`: the field `name` of a message stands before its words.
    """
    told = []
    for nth, request in enumerate(recorded, 1):
        told.append(f"request {nth}: {' '.join(_head(request['body']))}")
        messages = _messages(request["body"].get("messages", []), named)
        for role, text in _merge(messages) if merged else messages:
            told += indented(f"  {role}: {text}")
    return told


def indented(text: str) -> list[str]:
    """Lines of which those after the first stand further right."""
    first, *rest = text.split("\n")
    return [first.rstrip()] + [f"      {line}".rstrip() for line in rest]


def _head(body: dict) -> list[str]:
    options = body.get("options") or {}
    words = [str(body.get("model"))]
    temperature = body.get("temperature", options.get("temperature"))
    if temperature is not None:
        words.append(f"temperature={temperature:g}")
    form = body.get("format") or (body.get("response_format") or {}).get("type")
    if form:
        words.append(f"form={form if form in ('json', 'text') else _form(form)}")
    tools = [tool["function"]["name"] for tool in body.get("tools") or []]
    if tools:
        words.append(f"offers={','.join(sorted(tools))}")
    # A call is left to the model where nothing is said.
    if (choice := body.get("tool_choice")) not in (None, "auto"):
        words.append(f"choice={choice if isinstance(choice, str) else json.dumps(choice, sort_keys=True)}")
    return words


def _form(form: object) -> str:
    return {"json_object": "json", "json_schema": "schema"}.get(form, "schema") if isinstance(form, str) else "schema"


def _messages(messages: list[dict], named: bool) -> list[tuple[str, str]]:
    """Each as its role and its text."""
    told: list[tuple[str, str]] = []
    tools: dict[str, str] = {}
    for message in messages:
        role = message["role"]
        text = content(message.get("content"))
        if role == "tool":
            name = tools.get(message.get("tool_call_id"), message.get("tool_name") or message.get("name") or "?")
            told.append((f"result of {name}", text))
            continue
        if text or not message.get("tool_calls"):
            name = message.get("name")
            named_here = named and role == "user" and name and name != SELECTOR
            told.append((role, f"{name}: {text}" if named_here else text))
        for call in message.get("tool_calls") or []:
            tools[call.get("id")] = call["function"]["name"]
            told.append(("calls", shown_call(call["function"]["name"], call["function"]["arguments"])))
    return told


def _merge(messages: list) -> list:
    merged: list = []
    for role, text in messages:
        if merged and merged[-1][0] == role and role in ("user", "assistant", "system"):
            merged[-1] = (role, f"{merged[-1][1]}\n\n{text}")
        else:
            merged.append((role, text))
    return merged


def content(value: object) -> str:
    """The words of a message's content, pictures by their kind."""
    if isinstance(value, list):
        return "".join(part["text"] if part.get("type") == "text" else "<image>" for part in value)
    return value or ""


def shown_call(name: str, arguments: object) -> str:
    """A call with its arguments as compact JSON, if they are any."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return f"{name} {arguments}"
    return f"{name} {json.dumps(arguments, ensure_ascii=False, sort_keys=True)}"
