"""`mgpu-rt inspect`: the images of device code in a file, and what this machine's HIP says to them.

mgpu_rt._images reads the file; this package asks HIP about its images (verdict) and prints them
(listing).
"""
