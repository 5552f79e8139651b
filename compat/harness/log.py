"""What happened in a conversation of Polylogue, by its log, in the words that originals are reported with."""

import json
import re

from .requests import shown_call

# How models are sent values.
COMPACT = {"ensure_ascii": False, "separators": (",", ":")}

# Why a chat ended. Where the originals tell no two kinds apart, neither does this.
ENDS = {
    "finished": "finished",
    "replied": "finished",
    "all_spoken": "finished",
    "no_handoff": "finished",
    "graph_complete": "finished",
    "dag_complete": "finished",
    "end_state": "finished",
    "voted": "finished",
    "chair_decided": "finished",
    "undecided": "finished",
    "request_satisfied": "finished",
    "tasks_done": "finished",
    "count_reached": "limit",
    "mentioned": "termination message",
    "matched": "termination message",
    "condition": "termination message",
    "turns": "limit",
    "messages": "limit",
    "rounds": "limit",
    "calls": "limit",
    "auto_replies": "limit on automatic replies",
    "left": "exit",
    "stopped": "exit",
    "no_reply": "no reply",
    "no_output": "no output",
    "no_speaker": "no speaker",
    "no_participants": "no speaker",
    "loop_detected": "circling",
    "completed": "completed",
    "errors": "errors",
}


def report(events: list[dict], outer: bool) -> dict:
    """Chats in the order in which they opened, answers of people, and tokens; the outermost chat if `outer`."""
    chats: dict[str, dict] = {}
    asked, usage = [], {"input": 0, "output": 0}
    for event in events:
        chat = chats.setdefault(event.get("chat", ""), {"said": [], "ends": None, "summary": None})
        _tell(event, chat)
        if event["type"] == "input_provided":
            asked.append([event["to"], event["text"]])
        for key in usage:
            usage[key] += event.get("usage", {}).get(key, 0) if event["type"] == "model_replied" else 0
    if not outer:
        chats.pop("", None)
    return {"chats": list(chats.values()), "asked": asked, "usage": usage}


def histories(text: str) -> dict[str, list[list[str]]]:
    """What `show --history` prints, by agent: roles and texts, without the system text."""
    told: dict[str, list[list[str]]] = {}
    pieces = re.split(r"^------ (.+) ------$", text, flags=re.MULTILINE)
    for name, history in zip(pieces[1::2], pieces[2::2]):
        messages = re.split(r"^\[(system|user|assistant|tool)\]:$", history, flags=re.MULTILINE)
        pairs = zip(messages[1::2], messages[2::2])
        # Within another chat the agent's name, which may hold spaces, stands after the chat's path.
        agent = name.split(" ", 1)[1] if name.startswith("/") else name
        told[agent] = [[role, words.strip("\n")] for role, words in pairs if role != "system"]
    return told


def _tell(event: dict, chat: dict) -> None:
    kind = event["type"]
    if kind in ("opened", "reopened"):
        messages = event.get("messages") or [event.get("message")]
        # What a chat inherits from the one it continues was said there.
        for message in filter(None, messages[event.get("inherited", 0) :]):
            chat["said"] += _said(message)
    elif kind in ("message", "posted") and event.get("to") != {"only": []}:
        chat["said"] += _said(event)
    elif kind == "failed":
        chat["ends"] = "error"
    elif kind == "closed":
        reason = event["reason"] if isinstance(event["reason"], str) else next(iter(event["reason"]))
        reason = event["reason"]["other"]["code"] if reason == "other" else reason
        chat["ends"], chat["summary"] = ENDS.get(reason, reason), event["summary"]


def _said(message: dict) -> list[list[str]]:
    told, text = [], []
    for part in message["parts"]:
        if "text" in part:
            text.append(part["text"])
        elif "call" in part:
            told.append([message["from"], f"calls {shown_call(part['call']['tool'], part['call'].get('args'))}"])
        elif "tool_result" in part:
            told.append([message["from"], f"result: {_result(part['tool_result']['result'])}"])
    return ([[message["from"], "".join(text)]] if text or not told else []) + told


def _result(result: dict) -> str:
    parts = result.get("parts", [])
    return "\n\n".join(part["text"] if "text" in part else json.dumps(part["data"], **COMPACT) for part in parts)
