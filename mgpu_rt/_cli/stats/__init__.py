"""Implements `mgpu-rt stats` and `mgpu-rt compare`. `statistics` reads files, `runs` measures a
program, and `tables` formats statistics."""
