"""`mgpu-rt stats` and `mgpu-rt compare`: reads statistics files (statistics), makes them by running
a program twice (runs), and shows them (listing, comparison)."""
