"""A system call that the kernel refuses to a program, as in a container."""

#: Refuses userfaultfd to a program, as a container's filter does.
REFUSE_USERFAULTFD = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 323), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
text = b"".join(struct.pack("HBBI", *each) for each in code)
buffer = ctypes.create_string_buffer(text)
filter = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""
