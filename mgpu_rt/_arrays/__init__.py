"""Arrays in memory that this package or a lowered function has allocated: their owner (memory),
and how other packages take them without a copy (arrays)."""
