"""A server for tests that is reached by HTTP, and misbehaves when it is told to."""

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# How it behaves from the start, where it notes what happens, and at which port it is; any, if that is 0.
MANNER, NOTES, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
NAMES = ["echo", "stream", "hang", "die", "break", "page", "fail", "forget", "endless", "large", "refuse"]
sessions = set()


def note(text):
    with open(NOTES, "a") as notes:
        notes.write(text + "\n")


def text(words):
    return {"content": [{"type": "text", "text": words}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, kind, body, session=None):
        body = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(body)

    def reply(self, request, result, session=None):
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})
        self.answer(200, "application/json", body, session)

    def begin_events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()

    def event(self, message):
        self.wfile.write(f"event: message\r\ndata: {json.dumps({'jsonrpc': '2.0', **message})}\r\n\r\n".encode())
        self.wfile.flush()

    def do_GET(self):
        self.answer(405, "text/plain", "no streams")

    def do_DELETE(self):
        note("deleted")
        sessions.discard(self.headers["Mcp-Session-Id"])
        self.answer(200, "text/plain", "")

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, params = request.get("method"), request.get("params", {})
        if MANNER == "locked" and self.headers["Authorization"] != "Bearer hunter22":
            return self.answer(401, "application/json", '{"error": "who are you?"}')
        if MANNER == "moved":
            return self.answer(307, "text/plain", "")
        if MANNER == "site":
            return self.answer(200, "text/html", "<h1>Welcome</h1>")
        if MANNER == "ill":
            return self.answer(503, "text/plain", "out of memory " * 100)
        if method == "initialize":
            session = "s%d" % time.time_ns()
            sessions.add(session)
            note("begun")
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "test", "version": "1"},
            }
            return self.reply(request, result, session)
        if self.headers["Mcp-Session-Id"] not in sessions:
            return self.answer(404, "text/plain", "no such session")
        if method == "notifications/cancelled":
            note("cancelled")
        if "id" not in request:
            return self.answer(202, "text/plain", "")
        if method == "tools/list":
            schema = {"type": "object"}
            return self.reply(request, {"tools": [{"name": name, "inputSchema": schema} for name in NAMES]})
        if method == "tools/call":
            return self.call(request, params["name"], params.get("arguments", {}))
        return self.reply(request, {})

    def call(self, request, name, args):
        if name == "echo":
            return self.reply(request, text(args.get("text", "")))
        if name == "stream":
            self.begin_events()
            token = request["params"]["_meta"]["progressToken"]
            for done in (1, 2):
                params = {"progressToken": token, "progress": done, "total": 2}
                self.event({"method": "notifications/progress", "params": params})
            return self.event({"id": request["id"], "result": text("streamed")})
        if name == "hang":
            note("hangs")
            time.sleep(600)
        if name == "die":
            self.begin_events()
            os._exit(3)
        if name == "break":
            self.begin_events()
            self.wfile.write(b"data: {\"jsonr")
            self.close_connection = True
            return None
        if name == "page":
            return self.answer(200, "text/html", "<h1>Sorry</h1>")
        if name == "fail":
            return self.answer(500, "text/plain", "the disk is on fire, key hunter22")
        if name == "forget":
            sessions.clear()
            return self.reply(request, text("forgotten"))
        if name == "endless":
            self.begin_events()
            while True:
                self.wfile.write(b"data: " + b"x" * 65536)
        if name == "large":
            return self.reply(request, text("x" * (4 << 20)))
        error = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32602, "message": "not on Sundays"}}
        return self.answer(400, "application/json", json.dumps(error))


server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
server.daemon_threads = True
note("port %d" % server.server_port)
server.serve_forever()
