"""Benchmarks and the demonstration: programs, and the runtimes that the benchmarks compare."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "bench" / "programs"
