"""Images of device code: finds them in files (find), reads them (image), and describes them (amd,
nvidia)."""
