"""Images of device code: found in files (find), cut out and understood (image), described (amd,
nvidia). Needs pyelftools and msgpack, which `pip install mgpu_rt[inspect]` brings."""
