"""The package as a Python program uses it: modules, arguments, streams, errors, the examples."""

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"
KERNELS = EXAMPLES / "kernels.mlir"
