"""Programs that run to their end, with or without a person at a pseudo-terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

# How long one program may take in all. Generous: only what hangs takes that long.
PATIENCE_S = 60

ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_=>])")

# What stands at the end of the screen when a person is asked: the prompts of AutoGen, and Polylogue's `NAME> `, which begins a line.
# Without the line's beginning it is the same question, drawn again for the keys that were typed.
PROMPT = re.compile(r"(to (end|stop) the conversation: |to use auto selection\): |\n[^\n]{0,80}> ?)$")


class Hangs(Exception):
    """A program did not end in time, or waits for a person who has nothing more to say."""


def run(command: list[str], cwd: str, env: dict[str, str], human: list[str] | None) -> tuple[int, str]:
    """The exit code and everything that was printed."""
    return _piped(command, cwd, env) if human is None else _typed(command, cwd, env, list(human))


def _piped(command: list[str], cwd: str, env: dict[str, str]) -> tuple[int, str]:
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired as hangs:
        _kill(process)
        raise Hangs(f"no end after {PATIENCE_S} s:\n{hangs.output}") from None
    return process.returncode, output


def _kill(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _typed(command: list[str], cwd: str, env: dict[str, str], lines: list[str]) -> tuple[int, str]:
    keys, screen = pty.openpty()
    fcntl.ioctl(keys, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env | {"TERM": "xterm-256color"},
        stdin=screen,
        stdout=screen,
        stderr=screen,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(screen)
    try:
        return _converse(process, keys, lines)
    finally:
        _kill(process)
        os.close(keys)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _converse(process: subprocess.Popen, keys: int, lines: list[str]) -> tuple[int, str]:
    """Types the next line whenever the screen ends with a prompt and nothing more is written for a moment."""
    # The screen begins a line.
    written, since, end = "\n", 0, time.monotonic() + PATIENCE_S
    while True:
        quiet = not select.select([keys], [], [], 0.2)[0]
        if not quiet:
            try:
                piece = os.read(keys, 65536)
            except OSError:
                piece = b""
            if not piece:
                break
            written += piece.decode("utf-8", "replace")
        elif PROMPT.search(_plain(written[since:])):
            if not lines:
                raise Hangs(f"a question after the last answer:\n{_plain(written)}")
            since = len(written)
            os.write(keys, lines.pop(0).encode() + b"\r")
        if time.monotonic() > end:
            raise Hangs(f"no end after {PATIENCE_S} s:\n{_plain(written)}")
    code = process.wait(timeout=PATIENCE_S)
    if lines:
        raise Hangs(f"nothing asks for the answers {lines}:\n{_plain(written)}")
    return code, _plain(written[1:])


def _plain(text: str) -> str:
    return ESCAPE.sub("", text).replace("\r\n", "\n").replace("\r", "")
