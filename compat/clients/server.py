"""A server with the teams of `teams/`, and some of the repository's: their scripts speak, or the model of `model.py`."""

import json
import os
import pathlib
import subprocess
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
SHIPPED = ["fixed-answer", "few-shot", "writer-critic"]


class Server:
    """`polylogue serve` on the loopback interface, with a store of its own. Ends with the `with` block."""

    def __init__(self, program, model):
        self.folder = tempfile.TemporaryDirectory(prefix="polylogue-clients-")
        teams = [HERE / "teams", *(HERE.parent.parent / "teams" / f"{name}.yaml" for name in SHIPPED)]
        store = pathlib.Path(self.folder.name) / "conversations.db"
        self.log = open(pathlib.Path(self.folder.name) / "log", "w+")
        # The clients send as fast as they can; how many requests of a token are refused is for other tests.
        limits = ["--limit", "requests_per_second=1000", "--limit", "request_burst=10000"]
        command = [program, "--store", store, "serve", *teams, "--listen", "127.0.0.1:0", *limits]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": self.folder.name,
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": model.url,
        }
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment, cwd=self.folder.name
        )
        lines = [self.process.stdout.readline().split() for _ in range(3)]
        if not all(lines):
            raise SystemExit(f"the server did not start: {self.messages()}")
        self.url, self.token = lines[0][0], lines[1][1]
        # What the link to the page is exchanged for a cookie by, once.
        self.login = lines[2][1].partition("#login=")[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()
        self.folder.cleanup()

    def messages(self):
        self.log.seek(0)
        return self.log.read()

    def get(self, path):
        """A document of the native API."""
        return json.loads(self.text(path))

    def text(self, path):
        """What the route of the native API replies with."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request) as response:
            return response.read().decode()

    def conversations(self, team):
        return self.get(f"/api/v1/conversations?limit=200&team={team}")["conversations"]
