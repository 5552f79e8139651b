"""Starts agents of Yacana at the scripted server and reports their histories at the end. Nothing of its behavior is changed.

Of Yacana 0.1 an agent speaks Ollama's protocol, of 0.4 that of OpenAI.
"""

import atexit
import json
import os

import yacana

yacana.LoggerManager.set_log_level(None)
_agents = []


def agent(name, system_prompt=None):
    """An agent of the scripted model."""
    if hasattr(yacana, "OpenAiAgent"):
        made = yacana.OpenAiAgent(
            name, "scripted", system_prompt=system_prompt, endpoint=os.environ["OPENAI_BASE_URL"], api_token="no-key"
        )
    else:
        made = yacana.Agent(name, "scripted", system_prompt=system_prompt, endpoint=os.environ["OLLAMA_HOST"])
    _agents.append(made)
    return made


def _history(of):
    history = of.history
    messages = history.get_messages_as_dict() if hasattr(history, "get_messages_as_dict") else history.get_as_dict()
    return [[message["role"], message["content"] or ""] for message in messages if message["role"] != "system"]


@atexit.register
def _report():
    report = {"histories": {one.name: _history(one) for one in _agents}}
    with open(os.environ["COMPAT_REPORT"], "w") as file:
        json.dump(report, file)
