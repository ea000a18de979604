"""Runs each random C program from Csmith twice: as a kernel, and on the CPU.

    python -m softgpu.tests.csmith              # 1,000 programs, in make check-amd
    python -m softgpu.tests.csmith 17 4711      # some, by their seeds

Csmith, from Debian's package csmith, generates each program from a seed. Clang 22 compiles each
program twice: as a kernel of one work-item for a GPU, and as an unoptimised program for the CPU.
The kernel and the CPU program each end by computing a checksum of all global variables. The
programs contain every kind of statement and type that Csmith generates by default. Examples of
types are structs (some of them packed), bit-fields, unions, volatiles, arrays, and pointers to
locals and globals. Examples of statements are calls and jumps. The programs call no library
function and take no arguments. Functions may call each other recursively, and each program bounds
the recursion.
"""
