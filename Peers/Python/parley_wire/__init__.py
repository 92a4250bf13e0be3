"""What Parley peers say to each other, read and written: from Sources/Wire/Wire.docc alone, on PyNaCl and hashlib."""
