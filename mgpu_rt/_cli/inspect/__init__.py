"""`mgpu-rt inspect`: shows the images of device code in a file, and this machine's HIP's answers to
them.

mgpu_rt._images reads the file; this package asks HIP about its images (verdict) and prints them
(listing).
"""
