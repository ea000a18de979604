"""What tests share: the library in a child, programs, images, stubs."""
