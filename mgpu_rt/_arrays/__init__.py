"""Arrays in memory that this package or a lowered function allocated: the memory's owner (memory),
and zero-copy access for other packages (arrays)."""
