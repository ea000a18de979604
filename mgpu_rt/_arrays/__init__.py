"""Arrays in device memory, and the work that uses them."""
