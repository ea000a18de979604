"""Runs a lowered program in rounds, in a Python process with PyTorch on the same device.

    python host.py PROGRAM.so ARGUMENT...

PROGRAM.so is a lowered program in the frame of lowered.c, or the library of hoisted.c. The
ARGUMENTs are for PROGRAM.so. PyTorch is optional.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys


def use_pytorch() -> None:
    """Lets PyTorch open the device and do some work on it."""
    with contextlib.suppress(ImportError):
        import torch

        if torch.cuda.is_available():
            torch.zeros(1, device="cuda").add_(1).cpu()


def main() -> None:
    use_pytorch()
    program = ctypes.CDLL(sys.argv[1])
    words = [word.encode() for word in sys.argv[1:]]
    program.main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None))


if __name__ == "__main__":
    main()
