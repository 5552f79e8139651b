"""Runs every client against one server, and prints what held. See `.ci/clients`."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time
import traceback
from importlib.metadata import version

# Nothing is fetched and nothing reported: set before the packages are imported.
os.environ |= {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOG": "ERROR",
    "LANGSMITH_TRACING": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
}

import frameworks
import openapi_checks
import openai_python
from model import Model
from server import HERE, Server


def absolute(path):
    """`path` as it is from any folder: the server runs in one of its own."""
    return pathlib.Path(path).resolve()


def node(server, modules):
    """`openai` for Node, which finds its package next to the script that it runs."""
    script = modules / "openai_node.mjs"
    script.write_text((HERE / "openai_node.mjs").read_text())
    environment = {**os.environ, "SERVER_URL": server.url, "SERVER_TOKEN": server.token}
    subprocess.run(["node", script], env=environment, check=True, timeout=60)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--polylogue", type=absolute, required=True, help="the program")
    parser.add_argument("--node-modules", type=absolute, required=True, help="the folder in which `openai` for Node was installed")
    parser.add_argument("--seed", type=int, default=None, help="the seed of the requests made from `/openapi.json`")
    parser.add_argument("only", nargs="*", help="clients by name; default: all")
    options = parser.parse_args()
    clients = {"openai": openai_python.run, "openai (Node)": lambda server: node(server, options.node_modules)}
    clients |= frameworks.ALL
    clients["schemathesis"] = lambda server: openapi_checks.run(server, options.seed)
    failed = []
    with Model() as model, Server(options.polylogue, model) as server:
        for name, use in clients.items():
            if options.only and name not in options.only:
                continue
            package = options.node_modules / "node_modules/openai/package.json"
            label = f"{name} {json.loads(package.read_text())['version'] if 'Node' in name else version(name)}"
            begun = time.monotonic()
            try:
                checked = use(server) or []
            except (Exception, SystemExit):
                traceback.print_exc()
                failed.append(name)
                print(f"FAILED {label}", flush=True)
            else:
                print(f"ok {label}: {', '.join(checked) or 'done'} ({time.monotonic() - begun:.1f} s)", flush=True)
        if failed:
            print("the last lines of the server:", *server.messages().splitlines()[-30:], sep="\n")
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
