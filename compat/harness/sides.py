"""Runs the two sides of a scenario, each against a scripted server of its own."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tempfile
from collections.abc import Iterator

from . import log, programs, terminal
from .scenario import Scenario


# What programs for the originals import.
HELPERS = pathlib.Path(__file__).parent.parent / "original"


@dataclasses.dataclass(frozen=True)
class Machine:
    """The programs that a comparison needs."""

    polylogue: pathlib.Path
    server: pathlib.Path
    # A folder with a virtual environment for each original, by its name and version.
    environments: pathlib.Path
    originals: programs.ForkServers

    def python(self, original: str) -> pathlib.Path:
        return self.environments / original / "bin" / "python"


@dataclasses.dataclass
class Run:
    """What one side did."""

    report: dict
    requests: list[dict]
    refused: str
    code: int
    screen: str


class Broke(Exception):
    """A side could not be run to an end that can be compared."""


@contextlib.contextmanager
def machine(polylogue: pathlib.Path, server: pathlib.Path, environments: pathlib.Path) -> Iterator[Machine]:
    """The machine, whose interpreters end with the comparison."""
    with tempfile.TemporaryDirectory(prefix="compat-") as home:
        env = _settings(pathlib.Path(home)) | {"PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1"}
        with programs.fork_servers(HELPERS / "fork_server.py", env) as originals:
            yield Machine(polylogue, server, environments, originals)


@contextlib.contextmanager
def _server(machine: Machine, scenario: Scenario, folder: pathlib.Path) -> Iterator[tuple[str, dict]]:
    """The server's address without the path, and what it recorded once it has ended."""
    script, record = folder / "script.json", folder / "requests.jsonl"
    script.write_text(scenario.playbook())
    process = subprocess.Popen(
        [machine.server, "--script", script, "--history", "any", "--record", record],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    seen = {"requests": [], "refused": ""}
    try:
        yield process.stdout.readline().strip().removesuffix("/v1"), seen
        _, seen["refused"] = process.communicate("", timeout=terminal.PATIENCE_S)
        seen["requests"] = [json.loads(line) for line in record.read_text().splitlines()]
    finally:
        process.kill()
        process.wait()


def _settings(folder: pathlib.Path) -> dict[str, str]:
    """Nothing of the user's own settings."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "NO_PROXY": "*",
    }


def _environment(folder: pathlib.Path, address: str) -> dict[str, str]:
    """The settings, and no way out of the machine."""
    return _settings(folder) | {
        "OPENAI_BASE_URL": f"{address}/v1",
        "OPENAI_API_KEY": "no-key",
        "OLLAMA_HOST": address,
    }


def _folder(scenario: Scenario, kept: pathlib.Path, side: str) -> pathlib.Path:
    folder = kept / scenario.id / side
    folder.mkdir(parents=True)
    for name, text in scenario.files.items():
        (folder / name).write_text(text)
    return folder


def original(machine: Machine, scenario: Scenario, kept: pathlib.Path) -> Run:
    """Runs the program of the scenario against the original."""
    folder = _folder(scenario, kept, "original")
    program, report = folder / "program.py", folder / "report.json"
    program.write_text(scenario.program)
    with _server(machine, scenario, folder) as (address, seen):
        env = _environment(folder, address) | {
            "PYTHONPATH": str(HELPERS),
            "COMPAT_REPORT": str(report),
        }
        server = machine.originals.of(machine.python(scenario.original))
        code, screen = terminal.run(server.program(program, str(folder), env), scenario.human[0])
    (folder / "screen.txt").write_text(screen)
    if code or not report.exists():
        raise Broke(f"the program of the original failed (exit code {code}):\n{_end(screen)}")
    return Run(json.loads(report.read_text()), seen["requests"], seen["refused"], code, screen)


def _end(screen: str) -> str:
    """The last lines: those of a Python traceback that say most."""
    return "\n".join(screen.splitlines()[-20:])


def polylogue(machine: Machine, scenario: Scenario, kept: pathlib.Path) -> Run:
    """Runs the commands of the scenario with Polylogue; they share a store."""
    folder = _folder(scenario, kept, "polylogue")
    if scenario.team is not None:
        (folder / "team.yaml").write_text(scenario.team)
    screens = []
    with _server(machine, scenario, folder) as (address, seen):
        env = _environment(folder, address) | {"POLYLOGUE_STORE": str(folder / "store.db")}
        human = scenario.human[1]

        def program(*words: str) -> programs.Start:
            return programs.command([str(machine.polylogue), *words], str(folder), env)

        for command in scenario.commands:
            names_model = re.search(r"^model:", scenario.team or "", re.MULTILINE)
            model = ["--model", scenario.model] if command[0] == "run" and not names_model else []
            code, screen = terminal.run(program(*command, *model), human)
            screens.append(screen)
        failed, events = terminal.run(program("show", "last", "--json"), None)
        _, history = terminal.run(program("show", "last", "--history"), None)
    screen = "\n".join(screens)
    (folder / "screen.txt").write_text(screen)
    if failed:
        raise Broke(f"there is no conversation (exit code {code}):\n{_end(screen)}")
    report = log.report([json.loads(line) for line in events.splitlines()], scenario.outer)
    report["histories"] = log.histories(history)
    return Run(report, seen["requests"], seen["refused"], code, screen)
