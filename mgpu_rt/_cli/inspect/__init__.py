"""Implements `mgpu-rt inspect`, which shows the images of device code in a file, and whether each
image fits the devices.

mgpu_rt._images reads the file. The module fit compares the images with the devices, and the module
listing prints the images.
"""
