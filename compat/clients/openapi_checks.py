"""Requests by `/openapi.json` (S36): no reply is an error of the server, and none is outside of its schema. Real conversations are read
and changed by every route; then schemathesis makes requests. A route that was never called, or never replied with success, is a failure."""

import json
import pathlib
import random
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
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
        # Each with the statuses of its replies.
        self.used = {}
        # The headers of the last reply.
        self.headers = {}

    def documented(self):
        return [(method.upper(), path) for path, methods in self.document["paths"].items() for method in methods]

    def note(self, method, path, status):
        self.used.setdefault((method, path), set()).add(status)

    def note_file(self, har):
        """Notes the requests of a file in the format HAR."""
        patterns = [(method, path, pattern_of(path)) for method, path in self.documented()]
        for entry in json.loads(har.read_text())["log"]["entries"]:
            method, status = entry["request"]["method"], entry["response"]["status"]
            address = urllib.parse.urlsplit(entry["request"]["url"]).path
            for of, path, pattern in patterns:
                if of == method and pattern.fullmatch(address):
                    self.note(method, path, status)

    def check_all_used(self):
        """Every route was called, and has replied with success."""
        unused = [f"{method} {path}" for method, path in self.documented() if (method, path) not in self.used]
        assert not unused, f"never called: {', '.join(unused)}; call them in `use_routes`"
        failing = [f"{method} {path} {sorted(codes)}" for (method, path), codes in sorted(self.used.items()) if min(codes) >= 300]
        assert not failing, f"never with success: {', '.join(failing)}; call them so in `use_routes`"

    def call(self, method, path, body=None, query="", headers=None, **values):
        operation = self.document["paths"][path][method.lower()]
        address = self.server.url + path.format(**values) + query
        headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json", **(headers or {})}
        headers = {name: value for name, value in headers.items() if value is not None}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(address, data, headers, method=method)
        # Below what the server allows one token.
        time.sleep(1 / 18)
        try:
            with urllib.request.urlopen(request) as response:
                status, media, self.headers = response.status, response.headers["Content-Type"], response.headers
                # A stream does not end, and may say nothing for a while.
                text = b"" if media and media.startswith("text/event-stream") else response.read()
        except urllib.error.HTTPError as error:
            status, media, text = error.code, error.headers["Content-Type"], error.read()
        assert status < 500 and status != 429, (method, address, status, text)
        self.note(method, path, status)
        responses = operation["responses"]
        content = responses["2XX" if status < 300 else "default"]["content"]
        media = (media or "").split(";")[0]
        if status == 204:
            assert not text, (method, address, text)
            return None
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


def pattern_of(path):
    """A regular expression of the addresses of a route."""
    return re.compile(re.sub(r"\\{\w+\\}", "[^/]*", re.escape(path)))


PATH = "/api/v1/conversations"
ONE = PATH + "/{id}"


def use_routes(routes):
    """Uses every documented route with real conversations, and once with an unknown one."""
    server, call = routes.server, routes.call
    ids = [routes.begin(team)["id"] for team in ["talk", "together", "limit", "fails", "ask"]]
    for id in [*ids, "unknown"]:
        for part in ["", "/events", "/calls", "/histories", "/graph"]:
            call("GET", ONE + part, id=id)
        call("GET", ONE + "/views/{agent}", id=id, agent="Ann")
        call("GET", ONE + "/events", query="?limit=2&from=1", id=id)
        call("POST", ONE + "/fork", {"seq": 1}, id=id)
        call("GET", "/api/v1/compare", query=f"?a={ids[0]}&b={id}")
    asked = call("GET", ONE, id=ids[4])["questions"][0]
    effects = [choice["effect"] for choice in asked["choices"]]
    assert (asked["kind"], effects) == ("turn", ["pass", "leave"]) and "Enter" not in asked["text"], asked
    question = asked["question"]
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
    talk = call("GET", "/api/v1/teams/{team}", team="talk")
    names = [participant["name"] for participant in talk["participants"]]
    assert talk["edges"] and {edge["to"] for edge in talk["edges"]} <= {*names, None}, talk
    for text in ["name: x", server.get("/api/v1/teams/talk/source")["text"]]:
        call("POST", "/api/v1/teams/check", {"text": text})
    token = call("POST", "/api/v1/tokens", {"name": "x", "scopes": ["read"]})
    listed = call("GET", "/api/v1/tokens")["tokens"]
    unused = [one["id"] for one in listed if one["last_used_ms"] is None]
    assert token["id"] in unused and len(unused) < len(listed), listed
    call("DELETE", "/api/v1/tokens/{token}", token=token["id"])
    for code in ["wrong", server.login]:
        call("POST", "/api/v1/session", {"code": code}, headers={"Authorization": None, "Origin": server.url})
    cookie = routes.headers["Set-Cookie"].split(";")[0]
    for own in [{}, {"Authorization": None, "Cookie": cookie, "Origin": server.url}]:
        call("DELETE", "/api/v1/session", headers=own)
    use_others(routes, ids)
    for method, path in routes.documented():
        if method == "GET" and "{" not in path and (method, path) not in routes.used:
            call(method, path)


def use_others(routes, ids):
    """What is steered and remembered, and MCP."""
    call = routes.call
    one = routes.begin("ask")["id"]
    for id in [one, "unknown"]:
        call("POST", ONE + "/raise", {"limits": {"calls": 2000}}, id=id)
        for owner in [{"agent": "Ann"}, {"chat": "ask"}]:
            call("POST", ONE + "/raise", {"limits": {"calls": 2000}, **owner}, id=id)
        call("POST", ONE + "/pause", {}, id=id)
        call("POST", ONE + "/next", {"who": "Ann"}, id=id)
        call("GET", ONE + "/continuation", id=id)
        call("GET", ONE + "/verify", id=id)
    call("GET", ONE + "/continuation", id=ids[2])
    exported = routes.server.text(ONE.format(id=ids[0]) + "/export")
    call("POST", "/api/v1/imports", {"log": exported, "team": "talk"})
    routes.begin("keeper")
    fact = call("GET", "/api/v1/memory")["facts"][0]["id"]
    for _ in range(2):
        call("DELETE", "/api/v1/memory/{fact}", fact=fact)
    written = routes.begin("writes")["id"]
    for id in [written, "unknown"]:
        call("GET", ONE + "/files", id=id)
        for name in ["notes.txt", "none.txt"]:
            call("GET", ONE + "/files/content", query=f"?path={name}", id=id)
    source = call("GET", "/api/v1/teams/{team}/source", team="talk")
    call("PUT", "/api/v1/teams/{team}", {"text": source["text"]}, headers={"If-Match": source["version"]}, team="talk")
    opening = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "checks", "version": "1"}},
    }
    for path, values in [("/mcp", {}), ("/mcp/{team}", {"team": "talk"})]:
        call("POST", path, opening, headers={"Accept": "application/json, text/event-stream"}, **values)
        session = {"Mcp-Session-Id": routes.headers["Mcp-Session-Id"], "Mcp-Protocol-Version": "2025-11-25"}
        for headers in [session, {}]:
            call("GET", path, headers={"Accept": "text/event-stream", **headers}, **values)
            call("DELETE", path, headers=headers, **values)


def run(server, seed=None):
    routes = Routes(server)
    use_routes(routes)
    tested = make_requests(routes, seed)
    routes.check_all_used()
    return tested


def make_requests(routes, seed):
    server = routes.server
    har = pathlib.Path(server.folder.name) / "requests.har"
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
        "--report-har-path",
        str(har),
        "--no-color",
        "--warnings",
        "off",
    ]
    print(f"schemathesis: seed {seed}, {SECONDS} s", flush=True)
    done = subprocess.run(command, cwd=server.folder.name, capture_output=True, text=True, timeout=SECONDS + 60)
    if done.returncode != 0:
        raise AssertionError(f"with `--seed {seed}`:\n{done.stdout}{done.stderr}")
    routes.note_file(har)
    tested = [line.strip() for line in done.stdout.splitlines() if "generated" in line]
    return [f"seed {seed}", *tested]
