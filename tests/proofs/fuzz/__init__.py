"""The readers of images and settings under clang's libFuzzer: see README.md."""
