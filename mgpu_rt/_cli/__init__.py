"""Implements the command mgpu-rt, and builds the environments in which the command runs
programs."""
