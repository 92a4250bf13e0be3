"""Reads what tcpdump wrote (pcap, Ethernet): datagrams, and TCP streams put together again."""
import collections
import struct


def packets(path):
    """(protocol, source, destination, sequence number, flags, payload) of every UDP and TCP packet."""
    data = memoryview(path.read_bytes())
    magic = struct.unpack_from("<I", data)[0]
    if magic != 0xA1B2C3D4:
        raise ValueError("not a pcap file of this byte order with microseconds")
    if struct.unpack_from("<I", data, 20)[0] != 1:
        raise ValueError("not captured on Ethernet")
    position = 24
    while position + 16 <= len(data):
        length, original = struct.unpack_from("<II", data, position + 8)
        frame = data[position + 16:position + 16 + length]
        position += 16 + length
        if length != original:
            raise ValueError("a frame was cut off")
        if (packet := parse_frame(frame)) is not None:
            yield packet


def parse_frame(frame):
    kind = struct.unpack_from(">H", frame, 12)[0]
    body = frame[14:]
    if kind == 0x0800:
        header = (body[0] & 15) * 4
        total = struct.unpack_from(">H", body, 2)[0]
        protocol, source, destination = body[9], bytes(body[12:16]), bytes(body[16:20])
        if struct.unpack_from(">H", body, 6)[0] & 0x1FFF:
            return "fragment", (source, 0), (destination, 0), 0, 0, bytes(body[header:total])
        # Segments that the sender's kernel left to the card to cut up say 0 above 64 KiB.
        payload = body[header:total or len(body)]
    elif kind == 0x86DD:
        protocol, source, destination = body[6], bytes(body[8:24]), bytes(body[24:40])
        total = struct.unpack_from(">H", body, 4)[0]
        payload = body[40:40 + total] if total else body[40:]
        if protocol == 44:
            return "fragment", (source, 0), (destination, 0), 0, 0, bytes(payload[8:])
    else:
        return None
    if protocol == 17:
        source_port, destination_port, length = struct.unpack_from(">HHH", payload)
        return "udp", (source, source_port), (destination, destination_port), 0, 0, bytes(payload[8:length])
    if protocol == 6:
        source_port, destination_port, sequence = struct.unpack_from(">HHI", payload)
        return ("tcp", (source, source_port), (destination, destination_port), sequence, payload[13],
                bytes(payload[(payload[12] >> 4) * 4:]))
    return None


class Traffic:
    """datagrams: [(source, destination, payload)]; streams: {(source, destination, number): bytes}."""

    def __init__(self, path):
        self.datagrams = []
        self.fragments = []
        segments = collections.defaultdict(dict)
        first, number = {}, collections.Counter()
        for protocol, source, destination, sequence, flags, payload in packets(path):
            if protocol == "udp":
                self.datagrams.append((source, destination, payload))
            elif protocol == "fragment":
                self.fragments.append(payload)
            else:
                pair = (source, destination)
                if flags & 2 and first.get((pair, number[pair])) != sequence:  # SYN: a new connection
                    number[pair] += 1
                    first[pair, number[pair]] = sequence
                if payload and (pair, number[pair]) in first:
                    offset = (sequence - first[pair, number[pair]] - 1) & 0xFFFFFFFF
                    known = segments[(*pair, number[pair])].get(offset, b"")
                    if len(payload) > len(known):
                        segments[(*pair, number[pair])][offset] = payload
        self.streams = {key: self._join(parts) for key, parts in segments.items()}

    @staticmethod
    def _join(parts):
        stream = bytearray()
        for offset in sorted(parts):
            if offset > len(stream):
                break
            stream += parts[offset][len(stream) - offset:] if offset + len(parts[offset]) > len(stream) else b""
        return bytes(stream)

    def all_bytes(self):
        """Everything in which a secret could show: each datagram, each stream."""
        yield from (payload for _, _, payload in self.datagrams)
        yield from self.fragments
        yield from self.streams.values()

    def contains(self, needle):
        return any(needle in data for data in self.all_bytes())

    @property
    def datagram_size_max(self):
        return max((len(payload) for _, _, payload in self.datagrams), default=0)


def frame_sizes(stream, limit, preface_max=128):
    """The sealed sizes of a session's frames (2-byte length, then so many bytes), or None.

    The preface and the handshake come first; where the frames begin is found by trying: only from a frame's start do
    the lengths lead to the stream's end. A last frame may be cut off.
    """
    for start in range(min(preface_max, len(stream)) + 1):
        sizes, position = [], start
        while position + 2 <= len(stream):
            size = stream[position] << 8 | stream[position + 1]
            if size > limit or size < 16:
                sizes = None
                break
            sizes.append(size)
            position += 2 + size
        if sizes:
            return sizes
    return None
