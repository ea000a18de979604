"""Runs random C programs from Csmith, each as a kernel and on the CPU.

    python -m softgpu.tests.csmith              # 1,000 programs, in make check-amd
    python -m softgpu.tests.csmith 17 4711      # some, by their seeds

Csmith, from Debian's package csmith, generates each program from a seed. Clang 22 compiles each
program twice: for a GPU as a kernel of one work-item, and without optimisation for the CPU. The
kernel and the CPU program each end by computing a checksum of all global variables. The programs
contain every kind of statement and type that Csmith generates by default. Examples are structs
(some of them packed), bit-fields, unions, volatiles, arrays, pointers to locals and globals, calls
and jumps. The programs call no library and have no arguments; functions may recurse mutually, and
each program bounds the recursion.
"""
