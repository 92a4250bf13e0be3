"""A Parley peer, written from Sources/Wire/Wire.docc alone, on PyNaCl, noiseprotocol and asyncio."""
from .peer import Peer  # noqa: F401
