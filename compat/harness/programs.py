"""Starts programs: as processes of their own, or as copies of an interpreter that has imported an original."""

import contextlib
import fcntl
import json
import os
import pathlib
import socket
import subprocess
import termios
import threading
from collections.abc import Callable, Iterator
from typing import Protocol


class Started(Protocol):
    """A program that runs in a session of its own."""

    pid: int

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code."""


# Starts a program with its standard input and its output.
Start = Callable[[int, int], Started]


def command(words: list[str], cwd: str, env: dict[str, str]) -> Start:
    """A program with its arguments."""

    def start(given: int, output: int) -> Started:
        take = _take_terminal if os.isatty(given) else None
        return subprocess.Popen(
            words, cwd=cwd, env=env, stdin=given, stdout=output, stderr=output, start_new_session=True, preexec_fn=take
        )

    return start


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class ForkServer:
    """An interpreter that has imported an original, and runs programs in copies of itself."""

    def __init__(self, python: pathlib.Path, script: pathlib.Path, env: dict[str, str]):
        self._requests, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # `-u`: what a person reads at the prompt is there when it is asked.
        words = [python, "-u", script, str(inner.fileno())]
        self._process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, pass_fds=[inner.fileno()])
        inner.close()

    def program(self, path: pathlib.Path, cwd: str, env: dict[str, str]) -> Start:
        """A program in Python."""

        def start(given: int, output: int) -> Started:
            told, telling = socket.socketpair()
            with telling:
                request = json.dumps({"path": str(path), "cwd": cwd, "env": env}).encode()
                socket.send_fds(self._requests, [request], [given, output, telling.fileno()])
            return _Forked(told)

        return start

    def close(self) -> None:
        self._requests.close()
        self._process.wait()


class _Forked:
    """A program that a fork server runs."""

    def __init__(self, told: socket.socket):
        self._told = told
        self._lines = told.makefile()
        self.pid = int(self._lines.readline())

    def wait(self, timeout: float | None = None) -> int:
        self._told.settimeout(timeout)
        with self._told, self._lines:
            return int(self._lines.readline())


class ForkServers:
    """A fork server for each original that is asked for."""

    def __init__(self, script: pathlib.Path, env: dict[str, str]):
        self._script, self._env = script, env
        self._servers: dict[pathlib.Path, ForkServer] = {}
        self._lock = threading.Lock()

    def of(self, python: pathlib.Path) -> ForkServer:
        """The server of the original whose interpreter this is."""
        with self._lock:
            if python not in self._servers:
                self._servers[python] = ForkServer(python, self._script, self._env)
            return self._servers[python]

    def close(self) -> None:
        for server in self._servers.values():
            server.close()


@contextlib.contextmanager
def fork_servers(script: pathlib.Path, env: dict[str, str]) -> Iterator[ForkServers]:
    """Fork servers that end with the comparison."""
    servers = ForkServers(script, env)
    try:
        yield servers
    finally:
        servers.close()
