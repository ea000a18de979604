"""`mgpu-rt stats` and `mgpu-rt compare`: statistics files read (files), made by running a program
twice (runs), and shown (table, comparison)."""
