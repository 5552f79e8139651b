"""Starts agents of Lagent at the scripted server and reports their memories at the end. Nothing of its behavior is changed."""

import atexit
import json
import os

from lagent.agents import Agent
from lagent.llms import GPTAPI

_agents = []


def model():
    """The scripted model. Lagent takes only names that it knows the beginning of."""
    return GPTAPI(
        model_type="gpt-scripted", key="no-key", api_base=os.environ["OPENAI_BASE_URL"] + "/chat/completions", retry=1
    )


def agent(name, system, **options):
    """An agent with a memory."""
    made = Agent(model(), system, name=name, **options)
    _agents.append(made)
    return made


def _memory(of):
    # Of several sessions, the last one that began.
    sessions = list(of.memory.memory_map.values())
    said = sessions[-1].save() if sessions else []
    return [["assistant" if message["sender"] == of.name else "user", message["content"]] for message in said]


@atexit.register
def _report():
    with open(os.environ["COMPAT_REPORT"], "w") as file:
        json.dump({"histories": {one.name: _memory(one) for one in _agents}}, file)
