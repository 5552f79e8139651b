"""Runs programs of one original in copies of an interpreter that has imported it already: importing takes seconds.

The only argument is the descriptor of a socket. Each message of it is a program: JSON with its `path`, folder (`cwd`) and environment
(`env`), and three descriptors: its standard input, its output, and where its process id and its exit code are written to, a line each.
"""

import importlib.util
import json
import os
import runpy
import signal
import socket
import sys
import termios
from fcntl import ioctl

# Whichever is installed here.
ORIGINALS = ["autogen", "camel.societies", "lagent.agents", "lagent.llms", "yacana"]


def _next_program(requests):
    """The next program, in the process that runs it. `None` in this process, when there are no more."""
    # Nobody waits for the watchers of programs.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 3)
        if not message:
            return None
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _forked(json.loads(message), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _forked(program, given, output, told):
    """Forks the program, and tells how it ends. Returns in the program's process alone."""
    child = os.fork()
    if child:
        os.close(given)
        os.close(output)
        os.write(told, b"%d\n" % child)
        _, status = os.waitpid(child, 0)
        os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    os.setsid()
    for descriptor, wanted in ((given, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, wanted)
    if os.isatty(0):
        ioctl(0, termios.TIOCSCTTY, 0)
    os.close(given)
    os.close(output)
    os.chdir(program["cwd"])
    os.environ.clear()
    os.environ.update(program["env"])
    return program["path"]


def main():
    for name in ORIGINALS:
        if importlib.util.find_spec(name.partition(".")[0]):
            importlib.import_module(name)
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        path = _next_program(requests)
    if path is None:
        return
    # As if Python had been started with the program.
    sys.argv[:] = [path]
    sys.path[0] = os.path.dirname(path)
    sys.path[1:1] = os.environ["PYTHONPATH"].split(os.pathsep)
    runpy.run_path(path, run_name="__main__")


if __name__ == "__main__":
    main()
