"""`mgpu-rt report`: what one run did, or two, as a page for a browser.

runs reads the files (trace, details) or runs a program. page puts the sections together: summary,
advice, calls, course (over time), caches, kernels; tables and charts make what they show, of markup.
"""
