"""Random C programs by Csmith, each as a kernel and on the processor.

    python -m softgpu.tests.csmith              # 1,000 programs, in make check-amd
    python -m softgpu.tests.csmith 17 4711      # some, by their seeds

Debian's package csmith writes the programs, each from a seed. Clang 22 compiles each twice: for a
GPU as one kernel of one work-item, and without optimisation for the processor. Both end with a
checksum of all globals. The programs have every kind of statement and type that Csmith writes by
default. Among them are structs, packed ones too, bit-fields, unions, volatiles, arrays, pointers to
locals and globals, calls, jumps. The programs call no library and take no arguments; functions may
call each other in a circle, which each program bounds itself.
"""
