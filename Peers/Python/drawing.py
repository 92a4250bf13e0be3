"""What vectors are made of: everything follows from a name."""
import hashlib

from parley_wire import keys
from parley_wire.reading import COUNTER_MAX, bits

VARINTS = (0, 1, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, COUNTER_MAX)
TEXTS = ("Ana", "Ben \"B\" \\ 😀", "会議", "я\n\t\r\x08\x7f\x85\u2028", "x" * 64)


class Draw:
    """Bytes that follow from a name: BLAKE2b of the name and a count."""

    def __init__(self, name):
        self.name, self.count = name.encode("utf-8"), 0

    def bytes(self, count):
        data = b""
        while len(data) < count:
            data += hashlib.blake2b(self.name + b"\0" + self.count.to_bytes(8, "big")).digest()
            self.count += 1
        return data[:count]

    def below(self, limit):
        return int.from_bytes(self.bytes(8), "big") % limit

    def of(self, choices):
        return choices[self.below(len(choices))]

    def number(self, most=COUNTER_MAX, least=0):
        return max(least, min(most, self.of(VARINTS)))

    def u64(self):
        return bits(int.from_bytes(self.bytes(8), "big"))


def person(draw):
    return keys.Identity(draw.bytes(32))
