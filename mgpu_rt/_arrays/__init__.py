"""Arrays in memory that this package or a lowered function has allocated: their owner (memory), and
other packages' access without a copy (arrays)."""
