"""Shared parts of the tests: the library in a child, programs, images, stubs."""
