"""A Python process with PyTorch on the same device, which runs a lowered program in rounds.

    python host.py PROGRAM.so

PROGRAM.so is a lowered program in the frame of lowered.c. Without PyTorch it runs all the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys


def main() -> None:
    with contextlib.suppress(ImportError):
        import torch

        if torch.cuda.is_available():
            torch.zeros(1, device="cuda").add_(1).cpu()  # it has a context, and work done in it
    program = ctypes.CDLL(sys.argv[1])
    arguments = (ctypes.c_char_p * 2)(b"hosted", None)
    program.main(1, arguments)


if __name__ == "__main__":
    main()
