"""Modules that tests share: the library in a child process, programs, images, stubs."""
