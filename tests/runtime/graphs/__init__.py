"""Graphs: those that the library builds, and those that programs capture."""
