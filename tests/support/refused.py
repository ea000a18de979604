"""A system call that the kernel refuses to a program, as in a container."""

from __future__ import annotations

import sys

USERFAULTFD = 323  # on x86-64

#: Installs a filter by which a system call returns EPERM, and becomes another program.
_REFUSE = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
number = int(sys.argv[1])
code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
text = b"".join(struct.pack("HBBI", *each) for each in code)
buffer = ctypes.create_string_buffer(text)
filter = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter, 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""


def refusing(number: int, *command: object) -> list[str]:
    """Returns a command line that runs a command without the system call of this number."""
    return [sys.executable, "-c", _REFUSE, str(number), *map(str, command)]
