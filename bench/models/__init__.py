"""Models as MLIR programs, in the ways in which people write their memory and waiting.

`graph` prints a model as linalg operations on memrefs and computes it with NumPy; `layers` has its
parts. `zoo` has the models, and `program` puts one into a whole program. `numbers` makes its
weights and inputs, equal here and in bench/native/model.c; `reference` computes its results.
"""
