"""Reads and checks what Parley nodes say to each other. Written from Sources/Wire/Wire.docc, on PyNaCl and hashlib."""
