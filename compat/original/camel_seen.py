"""Runs a role-play of CAMEL at the scripted server and reports what was said. Nothing of its behavior is changed."""

import atexit
import json
import os

from camel.models import ModelFactory
from camel.societies import RolePlaying
from camel.types import ModelPlatformType, RoleType
from camel.utils import BaseTokenCounter

DONE = "CAMEL_TASK_DONE"
_chats = []


class Words(BaseTokenCounter):
    """Counts words: the usual counter loads a vocabulary from the internet."""

    def count_tokens_from_messages(self, messages):
        return sum(len(str(message.get("content")).split()) for message in messages)

    def encode(self, text):
        return text.split()

    def decode(self, token_ids):
        return " ".join(token_ids)


MODEL = ModelFactory.create(
    model_platform=ModelPlatformType.OPENAI_COMPATIBLE_MODEL,
    model_type="scripted",
    url=os.environ["OPENAI_BASE_URL"],
    api_key="no-key",
    model_config_dict={"temperature": 0.2},
    max_retries=0,
    token_counter=Words(),
)


def prompts(assistant, user):
    """System prompts of one's own for both roles."""
    keys = {"task", "assistant_role", "user_role"}
    return {"sys_prompts": {RoleType.ASSISTANT: assistant, RoleType.USER: user}, "sys_msg_meta_dict_keys": keys}


def play(opening, limit, **options):
    """Plays to the end, as the loop of CAMEL's examples does: the marker, an agent that ends, or the limit on rounds."""
    session = RolePlaying("Solver", "Guide", model=MODEL, **options)
    said = [["user", opening]]
    _chats.append(chat := {"said": said, "ends": "limit"})
    message = session.init_chat(opening)
    for _ in range(limit):
        try:
            assistant, user = session.step(message)
        except ValueError:
            chat["ends"] = "error"
            break
        if user.msgs:
            said.append(["Guide", user.msg.content])
        if user.terminated or assistant.terminated:
            chat["ends"] = (user if user.terminated else assistant).info["termination_reasons"]
            break
        said.append(["Solver", assistant.msg.content])
        if DONE in user.msg.content:
            chat["ends"] = "termination message"
            break
        message = assistant.msg
    return session


@atexit.register
def _report():
    with open(os.environ["COMPAT_REPORT"], "w") as file:
        json.dump({"chats": _chats}, file)
