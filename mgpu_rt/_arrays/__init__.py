"""Arrays in device memory, arrays that callers pass, and the work that uses them."""
