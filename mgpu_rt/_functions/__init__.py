"""Calls lowered host functions from Python."""
