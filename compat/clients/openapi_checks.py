"""Requests by `/openapi.json` (S36): no reply is an error of the server, and none is outside of its schema. Real conversations are read
and changed by every route; then schemathesis makes requests."""

import json
import pathlib
import random
import subprocess
import sys
import time
import urllib.error
import urllib.request

import jsonschema_rs

# Streams that never end, and MCP, whose bodies are a protocol of its own, are tested elsewhere.
ELSEWHERE = "^/(api/v1/feed|mcp.*)$"
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance"
SECONDS = 30


class Routes:
    """The documented routes. Every reply is checked by the schema of its status."""

    def __init__(self, server):
        self.server = server
        self.document = server.get("/openapi.json")
        self.used = set()

    def call(self, method, path, body=None, query="", **values):
        operation = self.document["paths"][path][method.lower()]
        self.used.add((method, path))
        address = self.server.url + path.format(**values) + query
        headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(address, data, headers, method=method)
        # Below what the server allows one token.
        time.sleep(1 / 18)
        try:
            with urllib.request.urlopen(request) as response:
                status, media, text = response.status, response.headers["Content-Type"], response.read()
        except urllib.error.HTTPError as error:
            status, media, text = error.code, error.headers["Content-Type"], error.read()
        assert status < 500 and status != 429, (method, address, status, text)
        responses = operation["responses"]
        content = responses["2XX" if status < 300 else "default"]["content"]
        media = media.split(";")[0]
        assert media in content, (method, address, status, media)
        if not media.endswith("json"):
            return None
        reply = json.loads(text)
        schema = {**content[media]["schema"], "components": self.document["components"]}
        errors = [f"{error.instance_path}: {error.message}" for error in jsonschema_rs.iter_errors(schema, reply)]
        assert not errors, (method, address, errors, text[:500])
        return reply

    def begin(self, team):
        """A conversation of the team, at rest."""
        one = self.call("POST", PATH, {"team": team, "message": "Count."})
        while one["state"] == "running":
            time.sleep(0.1)
            one = self.call("GET", ONE, id=one["id"])
        return one


PATH = "/api/v1/conversations"
ONE = PATH + "/{id}"


def use_routes(server):
    """Uses every documented route with real conversations, and once with an unknown one."""
    routes = Routes(server)
    call = routes.call
    ids = [routes.begin(team)["id"] for team in ["talk", "together", "limit", "fails", "ask"]]
    for id in [*ids, "unknown"]:
        for part in ["", "/events", "/calls", "/histories", "/graph"]:
            call("GET", ONE + part, id=id)
        call("GET", ONE + "/views/{agent}", id=id, agent="Ann")
        call("GET", ONE + "/events", query="?limit=2&from=1", id=id)
        call("POST", ONE + "/fork", {"seq": 1}, id=id)
        call("GET", "/api/v1/compare", query=f"?a={ids[0]}&b={id}")
    question = call("GET", ONE, id=ids[4])["asked"][0]["question"]
    for _ in range(2):
        call("POST", ONE + "/answers", {"question": question, "text": "I am stuck."}, id=ids[4])
    for id in [ids[0], ids[2], "unknown"]:
        call("POST", ONE + "/resume", {"limits": {"calls": 1}}, id=id)
        call("POST", ONE + "/messages", {"text": "More."}, id=id)
        call("POST", ONE + "/stop", {}, id=id)
    call("GET", PATH, query="?limit=3")
    call("PATCH", ONE, {"title": "A title"}, id=ids[0])
    call("GET", ONE + "/export", id=ids[0])
    call("POST", "/api/v1/imports", {"log": "{}"})
    call("DELETE", ONE, id=ids[1])
    for team in ["talk", "solo", "unknown"]:
        for part in ["", "/source", "/graph"]:
            call("GET", "/api/v1/teams/{team}" + part, team=team)
        call("GET", "/v1/models/{model}", model=team)
        call("POST", "/v1/chat/completions", {"model": team, "messages": [{"role": "user", "content": "Count."}]})
    for text in ["name: x", server.get("/api/v1/teams/talk/source")["text"]]:
        call("POST", "/api/v1/teams/check", {"text": text})
    token = call("POST", "/api/v1/tokens", {"name": "x", "scopes": ["read"]})
    call("DELETE", "/api/v1/tokens/{token}", token=token["id"])
    call("POST", "/api/v1/session", {"code": "wrong"})
    call("DELETE", "/api/v1/session")
    documented = {(method.upper(), path) for path, methods in routes.document["paths"].items() for method in methods}
    for method, path in sorted(documented - routes.used):
        if method == "GET" and "{" not in path and path != "/api/v1/feed":
            call(method, path)
    return documented - routes.used - {("GET", "/api/v1/feed")}


def run(server, seed=None):
    unused = use_routes(server)
    return make_requests(server, seed) + [f"not used: {method} {path}" for method, path in sorted(unused)]


def make_requests(server, seed):
    seed = random.randrange(2**32) if seed is None else seed
    command = [
        pathlib.Path(sys.executable).parent / "schemathesis",
        "run",
        f"{server.url}/openapi.json",
        "--header",
        f"Authorization:Bearer {server.token}",
        "--checks",
        CHECKS,
        "--exclude-path-regex",
        ELSEWHERE,
        "--phases",
        "coverage,fuzzing",
        "--max-examples",
        "10",
        "--max-time",
        str(SECONDS),
        # Below what the server allows one token.
        "--rate-limit",
        "19/s",
        "--seed",
        str(seed),
        # The token is sent; others are tested elsewhere.
        "--generation-with-security-parameters",
        "false",
        "--request-timeout",
        "20",
        "--generation-database",
        "none",
        "--continue-on-failure",
        "--no-color",
        "--warnings",
        "off",
    ]
    print(f"schemathesis: seed {seed}, {SECONDS} s", flush=True)
    done = subprocess.run(command, cwd=server.folder.name, capture_output=True, text=True, timeout=SECONDS + 60)
    if done.returncode != 0:
        raise AssertionError(f"with `--seed {seed}`:\n{done.stdout}{done.stderr}")
    tested = [line.strip() for line in done.stdout.splitlines() if "generated" in line]
    return [f"seed {seed}", *tested]
