"""`python -m mgpu_rt`: the command mgpu-rt."""

from mgpu_rt.cli.main import main

main(prog_name="mgpu-rt")
