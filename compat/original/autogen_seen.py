"""Watches a program of AutoGen 0.2 and reports what it did when it ends. Nothing of its behavior is changed.

A program imports `MODEL`, the configuration of the scripted model, and goes on as any other.
"""

import atexit
import json
import os

import autogen
from autogen import ConversableAgent, GroupChat, GroupChatManager
from autogen.io.console import IOConsole

MODEL = {
    "config_list": [{"model": "scripted", "api_key": "no-key", "base_url": os.environ["OPENAI_BASE_URL"], "price": [0, 0]}],
    # A cache on disk would answer the second of two equal requests.
    "cache_seed": None,
}
NO_CODE = {"code_execution_config": False}

_agents, _asked, _typed, _chats, _open = [], [], [], [], []


def _content(message):
    content = message if isinstance(message, str) else message.get("content")
    if isinstance(content, list):
        return "".join(part["text"] if part["type"] == "text" else "<image>" for part in content)
    return content


def _arguments(text):
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, sort_keys=True)
    except ValueError:
        return text


def _lines(message):
    """What is said with a message: its words, calls of tools, and their results."""
    if isinstance(message, str):
        return [message]
    if message.get("tool_responses"):
        told = [f"result: {response['content']}" for response in message["tool_responses"]]
        # A person who answers instead of the tools says something besides.
        return told if message.get("role") == "tool" else [_content(message), *told]
    calls = [call["function"] for call in message.get("tool_calls") or []]
    told = [f"calls {call['name']} {_arguments(call['arguments'])}" for call in calls]
    return ([_content(message)] if _content(message) or not told else []) + told


def _watch(owner, name):
    """Puts the decorated function around a method."""
    inner = getattr(owner, name)

    def put(outer):
        setattr(owner, name, lambda self, *args, **kwargs: outer(inner, self, *args, **kwargs))

    return put


class _Predicate:
    """A predicate on messages that remembers what it found last: a program's own may change with each call."""

    def __init__(self, inner):
        self.inner, self.found = inner, False

    def __call__(self, message):
        self.found = self.inner(message)
        return self.found


@_watch(ConversableAgent, "__init__")
def _begin(inner, self, *args, **kwargs):
    inner(self, *args, **kwargs)
    _agents.append(self)
    self._is_termination_msg = _Predicate(self._is_termination_msg)


@_watch(ConversableAgent, "_print_received_message")
def _hear(inner, self, message, sender):
    # A message with several results is printed once more for each of them.
    if _open and not (isinstance(message, dict) and message.get("role") == "tool" and "tool_responses" not in message):
        _open[-1]["said"] += [[sender.name, line] for line in _lines(message)]
        _open[-1]["ends"] = None
    return inner(self, message, sender)


@_watch(ConversableAgent, "get_human_input")
def _ask(inner, self, prompt):
    answer = inner(self, prompt)
    _asked.append([self.name, answer])
    return answer


@_watch(IOConsole, "input")
def _type(inner, self, *args, **kwargs):
    _typed.append(inner(self, *args, **kwargs))
    return _typed[-1]


@_watch(GroupChat, "manual_select_speaker")
def _choose(inner, self, *args, **kwargs):
    known = len(_typed)
    chosen = inner(self, *args, **kwargs)
    _asked.extend(["chat_manager", answer] for answer in _typed[known:])
    return chosen


@_watch(ConversableAgent, "check_termination_and_human_reply")
def _check(inner, self, messages=None, sender=None, config=None):
    asked = len(_asked)
    final, reply = inner(self, messages, sender, config)
    ends = self._is_termination_msg.found
    if final and reply is None and _open:
        exits = len(_asked) > asked and _asked[-1][1] == "exit"
        _open[-1]["ends"] = "exit" if exits else "termination message" if ends else "limit on automatic replies"
    return final, reply


@_watch(GroupChat, "select_speaker")
def _select(inner, self, *args, **kwargs):
    try:
        return inner(self, *args, **kwargs)
    except autogen.agentchat.groupchat.NoEligibleSpeaker:
        _open[-1]["ends"] = "no speaker"
        raise


@_watch(ConversableAgent, "initiate_chat")
def _chat(inner, self, recipient, *args, **kwargs):
    chat = {"said": [], "ends": None, "summary": None}
    _chats.append(chat)
    _open.append(chat)
    try:
        result = inner(self, recipient, *args, **kwargs)
    except Exception:
        chat["ends"] = "error"
        raise
    finally:
        _open.pop()
    chat["summary"], chat["ends"] = result.summary, chat["ends"] or _end(recipient, kwargs)
    return result


@_watch(ConversableAgent, "a_initiate_chat")
async def _async_chat(inner, self, recipient, *args, **kwargs):
    # One after the other: of chats that run at the same time the messages cannot be told apart.
    chat = {"said": [], "ends": None, "summary": None}
    _chats.append(chat)
    _open.append(chat)
    result = await inner(self, recipient, *args, **kwargs)
    _open.remove(chat)
    chat["summary"], chat["ends"] = result.summary, chat["ends"] or _end(recipient, kwargs)
    return result


def _end(recipient, kwargs):
    if isinstance(recipient, GroupChatManager):
        return "termination message" if recipient._is_termination_msg.found else "limit"
    return "limit" if kwargs.get("max_turns") is not None else "no reply"


def _usage():
    total = {"input": 0, "output": 0}
    for agent in _agents:
        used = agent.client.total_usage_summary if agent.client else None
        for model in [value for value in (used or {}).values() if isinstance(value, dict)]:
            total["input"] += model["prompt_tokens"]
            total["output"] += model["completion_tokens"]
    return total


@atexit.register
def _report():
    report = {"chats": _chats, "asked": _asked, "usage": _usage()}
    with open(os.environ["COMPAT_REPORT"], "w") as file:
        json.dump(report, file)
