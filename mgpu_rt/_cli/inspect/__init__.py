"""Implements `mgpu-rt inspect`, which shows the images of device code in a file, and HIP's response
to each image.

mgpu_rt._images reads the file. The module verdict loads the images with HIP, and the module listing
prints the images.
"""
