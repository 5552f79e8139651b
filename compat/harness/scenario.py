"""Scenario files: the same conversation as a program against the original and as a team of Polylogue."""

import dataclasses
import json
import pathlib
import tomllib

# What one reply of the scripted model costs, unless the script says otherwise.
USAGE = {"input": 10, "output": 5}

KEYS = {"title", "original", "script", "human", "names", "task", "program", "team", "files", "commands", "outer", "differences"}


class Flaw(Exception):
    """A scenario file, or the documentation of differences, is wrong."""


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One scenario against one original."""

    name: str
    original: str
    title: str
    script: object
    # What people type, on the side of the original and of Polylogue.
    human: tuple[list[str] | None, list[str] | None]
    named: bool
    # Whether Polylogue's outermost chat is one of the original's, too, and no mere sequence of them.
    outer: bool
    program: str
    # None when a command of Polylogue makes the team file.
    team: str | None
    files: dict[str, str]
    commands: list[list[str]]
    reasons: list[str]
    difference: str

    @property
    def id(self) -> str:
        return f"{self.name}@{self.original}"

    @property
    def model(self) -> str:
        """The model of Polylogue's side: Ollama's own protocol where the original speaks it."""
        return "ollama:scripted" if self.original in ("yacana-0.1.3",) else "openai:scripted"

    def playbook(self) -> str:
        """The script in the form that the scripted server reads."""
        if isinstance(self.script, dict):
            agents = [{"system": key, "answers": _priced(answers)} for key, answers in self.script.items()]
            return json.dumps({"agents": agents})
        return json.dumps(_priced(self.script))


def _priced(answers: list) -> list[dict]:
    fields = [{"text": answer} if isinstance(answer, str) else answer for answer in answers]
    return [answer if "status" in answer else {"usage": USAGE} | answer for answer in fields]


def read(path: pathlib.Path) -> list[Scenario]:
    """Reads a file: a scenario for each original that it names."""
    data = tomllib.loads(path.read_text())
    unknown = data.keys() - KEYS
    if unknown:
        raise Flaw(f"{path}: unknown key `{min(unknown)}`")
    missing = {"title", "original", "script", "program"} - data.keys()
    # A team may be what a command of Polylogue makes.
    missing |= {"team"} - data.keys() if "commands" not in data else set()
    if missing:
        raise Flaw(f"{path}: `{min(missing)}` is missing")
    originals = data["original"] if isinstance(data["original"], list) else [data["original"]]
    return [_of(path.stem, original, data, path) for original in originals]


def _of(name: str, original: str, data: dict, path: pathlib.Path) -> Scenario:
    program = data["program"] if isinstance(data["program"], str) else data["program"][original]
    found = [entry for entry in data.get("differences", []) if entry.get("of", original) == original]
    if len(found) > 1:
        raise Flaw(f"{path}: more than one entry of `differences` is about {original}")
    entry = found[0] if found else {"why": [], "diff": ""}
    task = data.get("task")
    run = ["run", "team.yaml"] + ([task] if task is not None else [])
    return Scenario(
        name=name,
        original=original,
        title=data["title"],
        script=data["script"],
        human=_human(data.get("human")),
        named=data.get("names", "none") == "text",
        outer=data.get("outer", True),
        program=_text(program, path),
        team=_text(data["team"], path) if "team" in data else None,
        files=data.get("files", {}),
        commands=data.get("commands", [run]),
        reasons=entry["why"],
        difference=entry["diff"].strip("\n"),
    )


def _human(lines: list[str] | dict | None) -> tuple[list[str] | None, list[str] | None]:
    return (lines["original"], lines["polylogue"]) if isinstance(lines, dict) else (lines, lines)


def _text(value: str, path: pathlib.Path) -> str:
    """The text itself, or that of the file it names: a single line that ends with `.py`, `.yaml` or `.yml`."""
    if "\n" not in value and value.endswith((".py", ".yaml", ".yml")):
        return (path.parent / value).read_text()
    return value
