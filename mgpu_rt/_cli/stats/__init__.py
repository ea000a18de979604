"""Implements `mgpu-rt stats` and `mgpu-rt compare`: statistics reads files, runs creates files by
running a program twice, listing and comparison print files."""
