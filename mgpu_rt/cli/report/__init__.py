"""`mgpu-rt report`: what one run did, or two, as a page for a browser.

runs reads the files (trace, details) or runs a program; advice says what to change; page puts the
sections together from tables and charts, which markup writes.
"""
