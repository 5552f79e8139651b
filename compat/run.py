#!/usr/bin/env python3
"""Compares Polylogue with the programs it follows, scenario by scenario. `README.md` beside this file says how."""

import argparse
import concurrent.futures
import pathlib
import shutil
import sys
import tempfile
import time

from harness import compare, document, scenario, sides, terminal

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE.parent / "target"


def main() -> int:
    args = _arguments()
    paths = (args.polylogue, args.server, args.environments)
    with sides.machine(*(path.absolute() for path in paths)) as machine:
        return _run(machine, args)


def _run(machine: sides.Machine, args: argparse.Namespace) -> int:
    """The exit code."""
    try:
        every = _scenarios(args.scenarios)
        flaws = document.flaws(args.document, every) if args.document else []
    except scenario.Flaw as flaw:
        print(f"error: {flaw}")
        return 2
    chosen = [one for one in every if not args.names or one.name in args.names or one.id in args.names]
    if not chosen:
        print("error: there is no such scenario\nhint: `--list` names them")
        return 2
    if args.list:
        print("\n".join(f"{one.id:48} {one.title}" for one in chosen))
        return 0
    missing = sorted({one.original for one in chosen if not machine.python(one.original).exists()})
    runnable = [one for one in chosen if one.original not in missing]
    failed = _compare(machine, runnable, args)
    for flaw in flaws:
        print(f"FAIL {flaw}")
    for original in missing:
        count = sum(one.original == original for one in chosen)
        print(f"SKIP {count} scenarios of {original}: it is not installed in {machine.environments}")
    failed += len(flaws) + (len(missing) if args.strict else 0)
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="scenarios, all by default")
    parser.add_argument("--scenarios", type=pathlib.Path, default=HERE / "scenarios", help="a folder of scenario files, or one")
    parser.add_argument("--document", type=_file, help="the document that lists the differences; empty for none")
    parser.add_argument("--polylogue", type=pathlib.Path, default=TARGET / "debug" / "polylogue", help="the program")
    parser.add_argument("--server", type=pathlib.Path, default=TARGET / "debug" / "examples" / "serve", help="the scripted server")
    parser.add_argument("--environments", type=pathlib.Path, default=TARGET / "originals", help="virtual environments of the originals")
    parser.add_argument("--keep", type=pathlib.Path, help="a new folder for what both sides were given, sent and printed")
    parser.add_argument("--jobs", type=int, default=2, help="scenarios at once (default: 2)")
    parser.add_argument("--show", action="store_true", help="print the records of both sides")
    parser.add_argument("--strict", action="store_true", help="fail if an original is not installed")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    return parser.parse_args()


def _file(name: str) -> pathlib.Path | None:
    return pathlib.Path(name) if name else None


def _scenarios(path: pathlib.Path) -> list[scenario.Scenario]:
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    return [one for file in files for one in scenario.read(file)]


def _compare(machine: sides.Machine, scenarios: list[scenario.Scenario], args: argparse.Namespace) -> int:
    """How many scenarios failed."""
    begun, failed, differ = time.monotonic(), 0, 0
    kept = args.keep or pathlib.Path(tempfile.mkdtemp(prefix="compat-"))
    try:
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for one, flaw in pool.map(lambda one: (one, _flaw(machine, one, kept, args.show)), scenarios):
                state = "FAIL" if flaw else "same" if not one.difference else "as listed"
                print(f"{state:9} {one.id:48} {one.title}", flush=True)
                if flaw:
                    print(flaw, flush=True)
                failed += bool(flaw)
                differ += not flaw and bool(one.difference)
    finally:
        if not args.keep:
            shutil.rmtree(kept, ignore_errors=True)
    same = len(scenarios) - failed - differ
    seconds = time.monotonic() - begun
    print(f"\n{len(scenarios)} scenarios in {seconds:.0f} s: {same} the same, {differ} differ as listed, {failed} failed")
    return failed


def _flaw(machine: sides.Machine, one: scenario.Scenario, kept: pathlib.Path, shows: bool) -> str | None:
    """What is wrong with a scenario."""
    try:
        original = sides.original(machine, one, kept)
        polylogue = sides.polylogue(machine, one, kept)
    except (sides.Broke, terminal.Hangs) as broke:
        return _indented(str(broke))
    theirs, ours = compare.records(original, polylogue, one)
    told = []
    if shows:
        told += ["--- original", *theirs, "--- polylogue", *ours, f"--- exit code {polylogue.code}"]
    found = compare.difference(theirs, ours)
    if found != one.difference:
        listed = one.difference or "(none)"
        told += ["the difference is", found or "(none)", "and is listed as", listed]
    return _indented("\n".join(told)) if told else None


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


if __name__ == "__main__":
    sys.exit(main())
