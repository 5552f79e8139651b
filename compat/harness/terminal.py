"""Programs that run to their end, with or without a person at a pseudo-terminal."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from .programs import Start

# How long one program may take in all. Generous: only what hangs takes that long.
PATIENCE_S = 60

ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_=>])")

# What stands at the end of the screen when a person is asked: the prompts of AutoGen, and Polylogue's `NAME> `, which begins a line.
# Without the line's beginning it is the same question, drawn again for the keys that were typed.
PROMPT = re.compile(r"(to (end|stop) the conversation: |to use auto selection\): |\n[^\n]{0,80}> ?)$")


class Hangs(Exception):
    """A program did not end in time, or waits for a person who has nothing more to say."""


def run(start: Start, human: list[str] | None) -> tuple[int, str]:
    """The exit code and everything that was printed."""
    return _piped(start) if human is None else _typed(start, list(human))


def _piped(start: Start) -> tuple[int, str]:
    output, inner = os.pipe()
    given = os.open(os.devnull, os.O_RDONLY)
    code, written = _watch(start, (given, inner), output, None)
    return code, written.replace("\r\n", "\n")


def _typed(start: Start, lines: list[str]) -> tuple[int, str]:
    keys, screen = pty.openpty()
    fcntl.ioctl(keys, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
    code, written = _watch(start, (screen, os.dup(screen)), keys, lines)
    return code, _plain(written)


def _watch(start: Start, inner: tuple[int, int], outer: int, lines: list[str] | None) -> tuple[int, str]:
    try:
        try:
            program = start(*inner)
        finally:
            for descriptor in inner:
                os.close(descriptor)
        try:
            written = _converse(outer, lines)
        finally:
            # Also what it left running, and what did not end in time.
            _kill(program.pid)
            code = program.wait(timeout=PATIENCE_S)
        if lines:
            raise Hangs(f"nothing asks for the answers {lines}:\n{_plain(written)}")
        return code, written
    finally:
        os.close(outer)


def _kill(session: int) -> None:
    """Ends what a program left running."""
    try:
        os.killpg(session, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _converse(outer: int, lines: list[str] | None) -> str:
    """What is written until the end. Types the next line whenever the screen ends with a prompt and nothing more is written for a moment."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    # The screen begins a line.
    written, since, end = "\n", 0, time.monotonic() + PATIENCE_S
    while True:
        quiet = not select.select([outer], [], [], 0.2)[0]
        if not quiet:
            try:
                piece = os.read(outer, 65536)
            except OSError:
                piece = b""
            if not piece:
                return written[1:]
            written += decoder.decode(piece)
        elif lines is not None and PROMPT.search(_plain(written[since:])):
            if not lines:
                raise Hangs(f"a question after the last answer:\n{_plain(written)}")
            since = len(written)
            os.write(outer, lines.pop(0).encode() + b"\r")
        if time.monotonic() > end:
            raise Hangs(f"no end after {PATIENCE_S} s:\n{_plain(written)}")


def _plain(text: str) -> str:
    return ESCAPE.sub("", text).replace("\r\n", "\n").replace("\r", "")
