"""Implements `mgpu-rt compare --report`, which shows one run, or two runs, as a page for a browser.

The module inputs reads the files or runs a program. The module page combines the sections (advice,
tables and charts), and the module format writes the sections' numbers and markup.
"""
