"""`mgpu-rt inspect`: the images of device code in a file, and what this machine's HIP says to them.

What a file holds is mgpu_rt.images' to say; here it is asked of HIP (hip), and printed (text).
"""
