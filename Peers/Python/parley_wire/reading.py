"""Bytes in, values out (Wire.md, Conventions; Refusals.md)."""

COUNTER_MAX = 4_611_686_018_427_387_903


class Refused(Exception):
    """Why bytes were refused: a reason of Refusals.md and the field."""

    def __init__(self, reason, field="", detail=""):
        super().__init__(f"{field}: {reason} {detail}".strip())
        self.reason = reason
        self.field = field


class Reader:
    def __init__(self, data):
        self.data = bytes(data)
        self.at = 0

    @property
    def remaining(self):
        return len(self.data) - self.at

    def bytes(self, count, field):
        if self.remaining < count:
            raise Refused("truncated", field)
        start = self.at
        self.at += count
        return self.data[start : self.at]

    def rest(self):
        return self.bytes(self.remaining, "")

    def u8(self, field):
        return self.bytes(1, field)[0]

    def u16(self, field):
        return int.from_bytes(self.bytes(2, field), "big")

    def u64(self, field):
        return int.from_bytes(self.bytes(8, field), "big")

    def flags(self, field, largest):
        value = self.u8(field)
        if value > largest:
            raise Refused("out_of_range", field)
        return value

    def varint(self, field, largest=COUNTER_MAX):
        if self.remaining == 0:
            raise Refused("truncated", field)
        size = 1 << (self.data[self.at] >> 6)
        value = int.from_bytes(self.bytes(size, field), "big") & ((1 << (8 * size - 2)) - 1)
        if len(varint(value)) != size:
            raise Refused("malformed", field, "not the shortest form")
        if value > largest:
            raise Refused("out_of_range", field)
        return value

    def block(self, field, longest):
        count = self.varint(field)
        if count > longest:
            raise Refused("too_long", field)
        return self.bytes(count, field)

    def text(self, field, longest):
        try:
            return self.block(field, longest).decode("utf-8")
        except UnicodeDecodeError:
            raise Refused("not_utf8", field) from None

    def count(self, field, most, bytes_each):
        count = self.varint(field)
        if count > most:
            raise Refused("too_many", field)
        if count * bytes_each > self.remaining:
            raise Refused("truncated", field)
        return count

    def tail(self, field, shortest, longest):
        if self.remaining > longest:
            raise Refused("too_long", field)
        if self.remaining < shortest:
            raise Refused("truncated", field)
        return self.rest()

    def finish(self):
        if self.remaining:
            raise Refused("trailing")


def varint(value):
    for size in (1, 2, 4, 8):
        if value < 1 << 8 * size - 2:
            return (value | (size.bit_length() - 1) << (8 * size - 2)).to_bytes(size, "big")
    raise ValueError("a varint is below 2^62")


def block(data):
    return varint(len(data)) + data


def bits(value):
    """A u64 that is bits, as the vectors write it."""
    return value.to_bytes(8, "big").hex()
