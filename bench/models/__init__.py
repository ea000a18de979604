"""Models as MLIR programs, in the ways in which people write their memory and waiting.

`graph` prints a model as linalg operations on memrefs and computes it with NumPy, `layers` knows
what models are made of, `zoo` has the models, `program` puts one into a whole program, `numbers`
are its weights and inputs, the same here and in bench/native/model.c, and `reference` is what it
computes.
"""
