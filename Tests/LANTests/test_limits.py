"""At the edges of what fits, and nothing above it on the wire."""
import hashlib
import os
import re

from harness import MIB, Lan, eventually, expect
from pcap import Traffic, frame_sizes

DATAGRAM_MAX = 1232
SEALED_MAX = 32000


def largest_text(node):
    """The most bytes of ASCII that one text message can hold, found with what the refusal says."""
    message = node.refused(65, "send", "garden", "-", input="x" * 31_000)
    size, limit = sorted(int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", message))[-1:-3:-1]
    expect(size > limit >= 29_000, f"the refusal names the size and the limit: {message}")
    expect("file" in message and "share" in message, f"the refusal hints at sharing a file: {message}")
    return 31_000 - (size - limit)


def test_texts_and_files_at_the_edges():
    sizes = [0, 1, 16_383, 16_384, 16_385, MIB - 1, MIB, MIB + 1]
    with Lan(2) as lan:
        ana, ben = lan.node("Ana"), lan.node("Ben")
        with lan.capture() as capture:
            ana.join("garden", "seven wet dogs")
            ben.join("garden", "seven wet dogs")
            for node in (ana, ben):
                eventually(lambda: node.online("garden") == {"Ana", "Ben"}, 5, "both are there")
            most = largest_text(ana)
            text = "".join(chr(97 + index % 26) for index in range(most))
            ana.cli("send", "garden", "-", input=text)
            message = ana.refused(65, "send", "garden", "-", input=text + "x")
            expect("file" in message, f"one byte more is refused with a hint: {message}")
            eventually(lambda: ben.texts("garden") == [text], 5, "the largest text arrives whole")
            expect(ana.texts("garden") == [text], "what was refused was not sent in part")
            ana.refused(65, "send", "garden", "")

            for size in sizes:
                path, content = lan.folder / f"file-{size}", os.urandom(size)
                path.write_bytes(content)
                (media,) = ana.share("garden", path)
                eventually(lambda: media in {row["media_id"] for row in ben.cli("media", "garden")}, 5, f"{size} bytes")
                copy = ben.download(media, lan.folder / f"copy-{size}")
                expect(hashlib.sha256(copy.read_bytes()).digest() == hashlib.sha256(content).digest(),
                       f"a file of {size} bytes arrives whole")
        traffic = Traffic(capture.path)
        expect(traffic.datagrams and not traffic.fragments, "datagrams, and none in fragments")
        expect(traffic.datagram_size_max <= DATAGRAM_MAX,
               f"a datagram of {traffic.datagram_size_max} bytes; the limit is {DATAGRAM_MAX}")
        largest, long_streams = 0, 0
        for stream in traffic.streams.values():
            frames = frame_sizes(stream, SEALED_MAX)
            # Of a short stream, a wrong reading could fit by chance: it proves nothing.
            if len(stream) > 100_000:
                long_streams += 1
                expect(frames is not None, f"a stream of {len(stream)} bytes is not frames of at most {SEALED_MAX}")
                largest = max(largest, *frames)
        expect(long_streams > 0, "the files' streams were captured")
        return (f"largest text {most:,} bytes; datagrams to {traffic.datagram_size_max} of {DATAGRAM_MAX}, "
                f"frames to {largest:,} of {SEALED_MAX:,} bytes")
