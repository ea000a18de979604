"""Images of device code: found in files (find), cut out and understood (image), described (amd,
nvidia)."""
