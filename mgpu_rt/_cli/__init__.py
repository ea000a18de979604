"""Implements the command mgpu-rt, and the environments in which the command runs programs."""
