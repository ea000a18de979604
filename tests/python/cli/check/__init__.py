"""`mgpu-rt check`: a program of right accesses, and one of wrong ones."""
