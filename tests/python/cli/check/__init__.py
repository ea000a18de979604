"""`mgpu-rt check`: a program with right accesses, and one with wrong ones."""
