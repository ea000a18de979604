"""`mgpu-rt compare --report`: shows one run, or two, as a page for a browser.

inputs reads the files or runs a program. page puts the sections together (advice, tables and
charts); format writes their numbers and their markup.
"""
