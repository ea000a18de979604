"""Implements `mgpu-rt inspect`, which shows the images of device code in a file, and how this
machine's HIP responds to the images.

mgpu_rt._images reads the file; this package loads the file's images with HIP (verdict) and prints
the images (listing).
"""
