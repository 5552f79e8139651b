"""A model server of OpenAI's chat completions, for what a script in a team file cannot do: words that come one by one, and late replies.

The system message says what it replies: `Replies: FIRST | SECOND`, in turns, and `Delay: SECONDS`, before a reply begins."""

import http.server
import json
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        messages = request["messages"]
        settings = dict(line.split(": ", 1) for line in messages[0]["content"].splitlines())
        replies = settings["Replies"].split(" | ")
        nth = sum(message["role"] == "assistant" for message in messages)
        text = replies[min(nth, len(replies) - 1)]
        self.server.calls += 1
        time.sleep(float(settings.get("Delay", "0")))
        if request.get("stream"):
            self.stream(text)
        else:
            self.plain(text)

    def chunk(self, **fields):
        body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", **fields}
        data = f"data: {json.dumps(body)}\n\n".encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def stream(self, text):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for word in text.split(" "):
            space = "" if text.startswith(word) else " "
            self.chunk(choices=[{"index": 0, "delta": {"content": space + word}, "finish_reason": None}])
            time.sleep(0.03)
        self.chunk(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
        self.chunk(choices=[], usage=usage(text))
        data = b"data: [DONE]\n\n"
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n0\r\n\r\n")

    def plain(self, text):
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        body = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        data = json.dumps({**body, "usage": usage(text)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def usage(text):
    words = len(text.split(" "))
    return {"prompt_tokens": 11, "completion_tokens": words, "total_tokens": 11 + words}


class Model:
    """The server, in threads of this process. Ends with the `with` block."""

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.calls = 0
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
