"""Images of device code in files: found, read, and the cache's rule for them."""
