"""Models as MLIR programs, in variants of memory management and synchronisation.

`graph` prints a model as linalg operations on memrefs and computes it with NumPy; `layers` contains
a model's parts. `zoo` contains the models, and `program` wraps a model into a whole program.
`numbers` generates a model's weights and inputs, equal to those of bench/native/model.c;
`reference` computes the model's results.
"""
