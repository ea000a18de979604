"""Tests about images of device code in files: finding them, reading them, and the cache's rule for
them."""
