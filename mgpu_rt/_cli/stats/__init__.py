"""Implements `mgpu-rt stats` and `mgpu-rt compare`. The module statistics reads files, the module
runs measures a program, and the module tables formats statistics."""
