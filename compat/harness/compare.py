"""A record of each side as lines of text, and how the two differ."""

import difflib

from . import requests
from .requests import indented
from .scenario import Scenario
from .sides import Run


def records(original: Run, polylogue: Run, scenario: Scenario) -> tuple[list[str], list[str]]:
    """The record of each side. What the original does not have, such as summaries, is not compared."""
    sections = list(original.report)
    if any("summary" not in chat for chat in original.report.get("chats", [])):
        for chat in polylogue.report["chats"]:
            del chat["summary"]
    return _record(original, scenario, sections, True), _record(polylogue, scenario, sections, False)


def _record(run: Run, scenario: Scenario, sections: list[str], of_original: bool) -> list[str]:
    told = []
    for section in sections:
        told += _SECTIONS[section](run.report[section])
    told.append(f"model calls: {len(run.requests)}")
    told += requests.lines(run.requests, merged=of_original, named=of_original and scenario.named)
    told += [f"refused: {line}" for line in run.refused.splitlines()]
    return told


def _chats(chats: list[dict]) -> list[str]:
    told = []
    for nth, chat in enumerate([chat for chat in chats if chat["said"]], 1):
        told.append(f"chat {nth}:")
        for speaker, text in chat["said"]:
            told += indented(f"  {speaker}: {text}")
        if "summary" in chat:
            told += indented(f"  summary: {chat['summary']}")
        told.append(f"  ends: {chat['ends']}")
    return told


def _asked(asked: list) -> list[str]:
    return [f"asked: {who} answers `{text}`" for who, text in asked]


def _usage(usage: dict) -> list[str]:
    return [f"usage: {usage['input']} read, {usage['output']} written"]


def _histories(histories: dict[str, list]) -> list[str]:
    told = []
    for agent, messages in histories.items():
        told.append(f"history of {agent}:")
        for role, text in messages:
            told += indented(f"  {role}: {text}")
    return told


_SECTIONS = {"chats": _chats, "asked": _asked, "usage": _usage, "histories": _histories}


def difference(original: list[str], polylogue: list[str]) -> str:
    """Lines of the original alone begin with `-`, lines of Polylogue alone with `+`; an ellipsis stands between places."""
    told: list[str] = []
    matcher = difflib.SequenceMatcher(None, original, polylogue, autojunk=False)
    for tag, i, j, k, l in matcher.get_opcodes():
        if tag == "equal":
            continue
        if told:
            told.append("...")
        told += [f"-{line}" for line in original[i:j]] + [f"+{line}" for line in polylogue[k:l]]
    return "\n".join(told)
