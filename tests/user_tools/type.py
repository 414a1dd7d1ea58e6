"""Types lines into a shell on a terminal, and waits for a text after each.

Reads a job from standard input: the command of the shell, its environment, its folder, and the steps, each with the keys
to type and the text to wait for. Fails if a text does not come.
"""

import fcntl
import json
import os
import pty
import select
import struct
import sys
import termios
import time

LIMIT = 60


def main():
    job = json.load(sys.stdin)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(job["folder"])
        os.execve(job["shell"][0], job["shell"], job["environment"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
    shown = ""
    for typed, awaited in job["steps"]:
        os.write(terminal, typed.encode())
        end = time.monotonic() + LIMIT
        while awaited not in shown:
            readable, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
            if not readable:
                sys.exit(f"{awaited!r} does not come after {typed!r}, but {shown!r}")
            try:
                shown += os.read(terminal, 65536).decode(errors="replace")
            except OSError:
                sys.exit(f"the shell ended after {typed!r}: {shown!r}")
        # The rest may have the text of the next step.
        shown = shown.partition(awaited)[2]
    os.close(terminal)
    os.waitpid(pid, 0)


main()
