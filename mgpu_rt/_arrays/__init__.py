"""Defines arrays that this package or a lowered function has allocated. The module `memory` defines
the owner of an allocation. The module `arrays` shares the arrays with other packages without a
copy."""
