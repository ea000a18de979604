"""`mgpu-rt report`: what one run did, or two, as a page for a browser.

runs reads the files (trace, details) or runs a program. page puts the sections together: summary,
advice, calls, course (over time), caches, kernels; they are made of tables, charts and markup.
"""
