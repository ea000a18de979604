"""`mgpu-rt stats` and `mgpu-rt compare`: statistics files read (statistics), made by running a
program twice (runs), and shown (listing, comparison)."""
