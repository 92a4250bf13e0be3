"""Links of invitations (Wire.md, Channels)."""
from urllib.parse import quote, unquote_to_bytes

from .keys import blake2b, name_trouble, unbase32
from .objects import GENERATION_MAX, grant
from .reading import Reader, Refused

START = "parley://join/"
LINK_BYTES_MAX = 1_024
SALT_BYTES, CHECK_BYTES = 16, 4
TYPES = {1: "group", 2: "room"}


def invitation(link):
    """What it says, or Refused."""
    link = link.strip(" \t\n\v\f\r")
    if len(link.encode("utf-8")) > LINK_BYTES_MAX:
        raise Refused("too_long", "link")
    if not link.startswith(START):
        raise Refused("malformed", "link")
    encoded, mark, payload = link[len(START):].partition("#")
    try:
        name = unquote_to_bytes(encoded).decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("malformed", "name") from None
    normal, trouble = name_trouble(name)
    if not mark or trouble or quote(normal, safe="-._~") != encoded:
        raise Refused("malformed", "name")
    if payload.isupper():
        payload = payload.lower()
    data = unbase32(payload)
    if data is None or len(data) <= CHECK_BYTES:
        raise Refused("malformed", "payload")
    body, check = data[:-CHECK_BYTES], data[-CHECK_BYTES:]
    if blake2b(32, b"parley/1/link", normal.encode("utf-8"), b"\0", body)[:CHECK_BYTES] != check:
        raise Refused("malformed", "check sum")
    reader = Reader(body)
    version = reader.u8("version")
    if version not in TYPES:
        raise Refused("out_of_range", "version")
    value = {"name": normal, "type": TYPES[version], "founder": reader.bytes(32, "founder").hex()}
    value["salt"] = reader.bytes(SALT_BYTES, "salt").hex()
    value["generation"] = reader.varint("generation")
    if value["generation"] > GENERATION_MAX:
        raise Refused("out_of_range", "generation")
    value["secret"] = reader.bytes(32, "secret").hex()
    value["grant"] = grant(reader.rest())
    return value
