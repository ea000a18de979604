"""The runtime under clang's sanitizers: see sanitize.mk."""
