"""The differences that `docs/compatibility.md` lists, with their reasons and scenarios."""

import pathlib
import re

from .scenario import Flaw, Scenario

HEADING = "## Scenarios that differ from the originals"
ROW = re.compile(r"^\| `(?P<reason>[a-z0-9-]+)` \|.*\| (?P<scenarios>`[^|]*`) \|$")


def listed(path: pathlib.Path) -> dict[str, set[str]]:
    """The scenarios of each reason."""
    text = path.read_text()
    if HEADING not in text:
        raise Flaw(f"{path}: the heading `{HEADING}` is missing")
    reasons: dict[str, set[str]] = {}
    for line in text.split(HEADING, 1)[1].split("\n## ")[0].splitlines():
        if row := ROW.match(line):
            reasons[row["reason"]] = set(re.findall(r"`([^`]+)`", row["scenarios"]))
    return reasons


def flaws(path: pathlib.Path, scenarios: list[Scenario]) -> list[str]:
    """What the document and the scenarios do not agree about."""
    told = []
    table = listed(path)
    known = {scenario.name for scenario in scenarios}
    named: dict[str, set[str]] = {}
    for scenario in scenarios:
        for reason in scenario.reasons:
            named.setdefault(reason, set()).add(scenario.name)
    for reason in sorted(named.keys() | table.keys()):
        document, files = table.get(reason, set()), named.get(reason, set())
        told += [f"`{reason}` is not listed for `{name}` in {path.name}" for name in sorted(files - document)]
        for name in sorted(document - files):
            what = "does not name it" if name in known else "does not exist"
            told.append(f"{path.name} lists `{reason}` for the scenario `{name}`, which {what}")
    return told
