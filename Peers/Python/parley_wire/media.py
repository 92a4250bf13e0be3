"""Media messages, manifests and hash trees (Media.md)."""
import hashlib

from .reading import COUNTER_MAX, Reader, Refused

BLOCK_BYTES = 16_384
PIECE_BYTES = 1_048_576
LEAVES_PER_PIECE = 64
BLOCKS_PER_PIECE = 64
MANIFEST_BYTES_MAX = 16_777_216
FILES_MAX = 453_438
FILE_BYTES_MIN = 37
COMPONENTS_MAX = 64
COMPONENT_BYTES_MAX = 255
MIME_BYTES_MAX = 127
MESSAGE_BYTES_MAX = 31_900
MANIFEST_PART_BYTES_MAX = 24_000
PIECE_HASHES_MAX = 700
PIECES_MAX = 67_108_864
BLOCKS_MAX = 4_294_967_296
BITMAP_BYTES_MAX = 25_000
REFUSALS = {1: "unknown", 2: "changed", 3: "not a member", 4: "busy"}
ZERO = bytes(32)


def sha256(data):
    return hashlib.sha256(data).digest()


# The tree


def power_of_two(count):
    return 1 << max(0, count - 1).bit_length()


def merkle(hashes, width, filler):
    level = hashes + [filler] * (width - len(hashes))
    while len(level) > 1:
        level = [sha256(level[at] + level[at + 1]) for at in range(0, len(level), 2)]
    return level[0]


def piece_hash(piece, is_only):
    leaves = [sha256(piece[at : at + BLOCK_BYTES]) for at in range(0, len(piece), BLOCK_BYTES)]
    return merkle(leaves, power_of_two(len(leaves)) if is_only else LEAVES_PER_PIECE, ZERO)


def root(hashes):
    """Over the hashes of a file's pieces."""
    if not hashes:
        return ZERO
    return merkle(hashes, power_of_two(len(hashes)), merkle([ZERO], LEAVES_PER_PIECE, ZERO))


def piece_hashes(content):
    return [
        piece_hash(content[at : at + PIECE_BYTES], len(content) <= PIECE_BYTES)
        for at in range(0, len(content), PIECE_BYTES)
    ]


# The manifest


def manifest(data):
    if len(data) > MANIFEST_BYTES_MAX:
        raise Refused("too_long", "manifest")
    reader = Reader(data)
    if reader.u8("manifest.version") != 1:
        raise Refused("out_of_range", "manifest.version")
    mime = reader.text("manifest.mimeType", MIME_BYTES_MAX)
    files = [manifest_file(reader) for _ in range(reader.count("manifest.files", FILES_MAX, FILE_BYTES_MIN))]
    reader.finish()
    check_manifest(mime, files)
    return {"mime": mime or None, "files": files}


def manifest_file(reader):
    executable = reader.flags("manifest.flags", 1) == 1
    count = reader.count("manifest.path", COMPONENTS_MAX, 2)
    path = [reader.text("manifest.component", COMPONENT_BYTES_MAX) for _ in range(count)]
    size = reader.varint("manifest.byteCount")
    return {"path": path, "size": size, "root": reader.bytes(32, "manifest.root").hex(), "executable": executable}


def check_manifest(mime, files):
    if any(ord(character) < 0x20 or 0x7F <= ord(character) <= 0x9F for character in mime):
        raise Refused("malformed", "manifest.mimeType")
    if not files:
        raise Refused("malformed", "manifest.files")
    total, before = 0, None
    for file in files:
        if not file["path"]:
            raise Refused("malformed", "manifest.path")
        if any(name in ("", ".", "..") or "/" in name or "\0" in name for name in file["path"]):
            raise Refused("malformed", "manifest.component")
        if file["size"] == 0 and file["root"] != ZERO.hex():
            raise Refused("malformed", "manifest.root")
        total += file["size"]
        if total > COUNTER_MAX:
            raise Refused("out_of_range", "manifest.byteCount")
        path = [name.encode("utf-8") for name in file["path"]]
        if before is not None:
            if before == path:
                raise Refused("malformed", "manifest.path")
            if before > path:
                raise Refused("malformed", "manifest.files")
            if path[: len(before)] == before:
                raise Refused("malformed", "manifest.path")
        before = path


# Messages


def message(data):
    if len(data) > MESSAGE_BYTES_MAX:
        raise Refused("too_long", "media")
    reader = Reader(data)
    kind = reader.u8("media.type")
    number = reader.varint("media.number")
    if kind not in MESSAGES:
        raise Refused("out_of_range", "media.type")
    name, read = MESSAGES[kind]
    value = {"type": name, "number": number, **read(reader)}
    if name == "block" and number + value["count"] - 1 > COUNTER_MAX:
        raise Refused("out_of_range", "media.number")
    reader.finish()
    return value


def read_manifest(reader):
    return {"media": read_id(reader), "offset": reader.varint("manifest.offset", MANIFEST_BYTES_MAX)}


def read_id(reader):
    return reader.bytes(32, "media.id").hex()


def read_piece_hashes(reader):
    value = {
        "media": read_id(reader),
        "file": reader.varint("pieceHashes.file", FILES_MAX),
        "first": reader.varint("pieceHashes.first", PIECES_MAX),
        "count": reader.varint("pieceHashes.count", PIECE_HASHES_MAX),
    }
    if value["count"] == 0:
        raise Refused("out_of_range", "pieceHashes.count")
    return value


def read_count(reader, field):
    if not reader.remaining:
        return 1
    count = reader.varint(field, BLOCKS_PER_PIECE)
    if count < 2:
        raise Refused("out_of_range", field)
    return count


def read_block(reader):
    return {
        "media": read_id(reader),
        "file": reader.varint("block.file", FILES_MAX),
        "index": reader.varint("block.index", BLOCKS_MAX),
        "count": read_count(reader, "block.count"),
    }


def eighth(reader, field, largest):
    value = reader.varint(field, largest)
    if value % 8:
        raise Refused("out_of_range", field)
    return value


def read_have(reader):
    return {"media": read_id(reader), "first": eighth(reader, "have.first", PIECES_MAX)}


def read_manifest_part(reader):
    total = reader.varint("manifestPart.total", MANIFEST_BYTES_MAX)
    offset = reader.varint("manifestPart.offset", total)
    part = reader.tail("manifestPart.bytes", 1, MANIFEST_PART_BYTES_MAX)
    if offset + len(part) > total:
        raise Refused("malformed", "manifestPart.bytes")
    return {"total": total, "offset": offset, "bytes": part.hex()}


def read_piece_hashes_part(reader):
    part = reader.tail("pieceHashes.bytes", 32, 32 * PIECE_HASHES_MAX)
    if len(part) % 32:
        raise Refused("malformed", "pieceHashes.bytes")
    return {"bytes": part.hex()}


def read_holding(reader):
    count = reader.varint("holding.count", PIECES_MAX)
    first = eighth(reader, "holding.first", count)
    bitmap = reader.tail("holding.bitmap", 0, BITMAP_BYTES_MAX)
    bit_count = min(count - first, 8 * BITMAP_BYTES_MAX)
    if len(bitmap) != (bit_count + 7) // 8:
        raise Refused("malformed", "holding.bitmap")
    if bit_count % 8 and bitmap[-1] & (0xFF >> bit_count % 8):
        raise Refused("malformed", "holding.bitmap")
    return {"count": count, "first": first, "bitmap": bitmap.hex()}


def read_refused(reader):
    reason = reader.u8("refused.reason")
    if reason not in REFUSALS:
        raise Refused("out_of_range", "refused.reason")
    return {"reason": reason}


MESSAGES = {
    0x01: ("manifest", read_manifest),
    0x02: ("piece_hashes", read_piece_hashes),
    0x03: ("block", read_block),
    0x04: ("have", read_have),
    0x05: ("cancel", lambda reader: {"count": read_count(reader, "cancel.count")}),
    0x81: ("manifest_part", read_manifest_part),
    0x82: ("piece_hashes_part", read_piece_hashes_part),
    0x83: ("block_data", lambda reader: {"bytes": reader.tail("block.bytes", 1, BLOCK_BYTES).hex()}),
    0x84: ("holding_all", lambda reader: {}),
    0x85: ("holding_some", read_holding),
    0x86: ("refused", read_refused),
}
