"""Benchmarks and the demonstration: programs, and the runtimes with which they are compared."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "bench" / "programs"
