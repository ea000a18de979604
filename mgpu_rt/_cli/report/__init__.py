"""Implements `mgpu-rt compare --report`, which shows one run, or two runs, as a page for a browser.

`inputs` reads the files or runs a program. `page` combines the sections (`advice`, `tables` and
`charts`), and `format` writes the sections' numbers and markup.
"""
