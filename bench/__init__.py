"""Benchmarks and the demonstration: programs, and the sides that they are compared with."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "bench" / "programs"
