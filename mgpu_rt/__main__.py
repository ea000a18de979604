"""`python -m mgpu_rt`: the command mgpu-rt."""

from mgpu_rt._cli.main import main

main(prog_name="mgpu-rt")
