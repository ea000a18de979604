"""MLIR programs, lowered: to host objects, to device images, to what mlir-runner takes."""
