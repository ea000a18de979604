"""Arrays that this package or a lowered function allocated: `memory` defines the memory's owner,
and `arrays` gives other packages access without a copy."""
