"""`mgpu-rt compare --report`: what one run did, or two, as a page for a browser.

inputs reads the files or runs a program. page puts the sections together, of advice, tables and
charts; format writes their numbers and their markup.
"""
