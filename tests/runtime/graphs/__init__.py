"""Graphs that the library builds, and graphs that programs capture."""
