"""Fuzzes the readers of images and settings with clang's libFuzzer: see README.md."""
