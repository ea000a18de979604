"""`mgpu-rt inspect`: shows a file's images of device code, and whether each fits the device."""
