"""The JSON schema (Messages.md)."""
import json
import math
import re

from . import delivered, objects
from .fields import bounded, flag, size_of, sized, string
from .keys import is_control, name_trouble, unbase32
from .reading import COUNTER_MAX, Refused

MESSAGE_BYTES_MAX = 30_000
DEPTH_MAX = 16
TYPE_BYTES_MAX = 64
MESSAGE_ID_BYTES_MAX = 64
FILE_NAME_BYTES_MAX = 1_024
MIME_BYTES_MAX = 255
PICTURE_NUMBER_MAX = 2_147_483_647
IDENTIFIER_CHARACTERS = 52
GRANT_CHARACTERS_MAX = 220
HEADS_MAX = 256
ANNOUNCEMENT_BYTES_MAX = 2_048
TOKEN_BYTES_MAX = 4_096
GENERATION_MAX = 4_294_967_295
PLACE_BYTES_MAX = 1_024
EVENT_BYTES_MAX = 128
KEY_BYTES_MAX = 128
VALUE_BYTES_MAX = 4_096
EMOJI_BYTES_MAX = 64
READ_TARGETS_MAX = 64
LATITUDE_MAX, LONGITUDE_MAX = 90, 180
TITLE_BYTES_MAX, SUMMARY_BYTES_MAX = 256, 1_024
BUNDLE_MESSAGES_MAX, LEVELS_MAX = 300, 10
BUNDLE_BYTES_MAX = 9_000_300
COMBINED = ("text", "photo", "voice", "video", "file", "custom", "combine")
ROLES = ("owner", "admin", "member", "muted", "removed", "banned")
KINDS = {
    "status": 1, "raise_hand": 2, "text": 3, "photo": 4, "file": 5, "voice": 6, "video": 7, "joined": 8, "role": 9,
    "lower_hand": 10, "announcement": 11, "close": 12, "generation": 13, "token": 14, "organiser": 15, "location": 16,
    "custom": 17, "recall": 18, "edit": 19, "react": 20, "pin": 21, "read": 22, "cmd": 23, "combine": 24,
    "attribute": 25, "typing": 26}
# What is done to messages: entries that are not shown themselves.
DEEDS = ("recall", "edit", "react", "pin", "read")
NEED_ID = tuple(kind for kind in KINDS if kind not in ("status", "raise_hand", "typing"))
TAKE_OPTIONS = ("text", "photo", "file", "voice", "video", "location", "custom", "cmd", "combine")
LOG = re.compile("[0-9a-f]{16}")
INTEGER_MIN, INTEGER_MAX = -9_223_372_036_854_775_808, 9_223_372_036_854_775_807
TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})")
TIMESTAMP_BYTES_MAX = 40
SURROGATE = re.compile("[\ud800-\udfff]")


def parsed(data):
    """The value of a JSON text that every reader takes."""

    def members(pairs):
        names = [name for name, _ in pairs]
        if len(set(names)) != len(names):
            raise ValueError("a member named twice")
        if any("\0" in name for name in names):
            raise ValueError("U+0000 in a name")
        return dict(pairs)

    def integer(text):
        value = int(text) if len(text) <= len(str(INTEGER_MIN)) else INTEGER_MAX + 1
        if not INTEGER_MIN <= value <= INTEGER_MAX:
            raise ValueError("an integer beyond 64 bits")
        return value

    def number(text):
        value = float(text)
        if math.isinf(value):
            raise ValueError("a number beyond a double")
        return value

    def constant(text):
        raise ValueError(text)

    try:
        text = data.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=members, parse_int=integer, parse_float=number, parse_constant=constant)
        if SURROGATE.search(json.dumps(value, ensure_ascii=False)):
            raise ValueError("a lone surrogate")
        return value
    except (ValueError, RecursionError) as error:
        raise Refused("malformed", "json", str(error)) from None


def check_depth(value, depth=0):
    if depth > DEPTH_MAX:
        raise Refused("too_many", "json depth")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        check_depth(inner, depth + 1)


def message(data, author=None):
    """The checked message. `author`: the PeerID whose signature or session it came with."""
    if len(data) > MESSAGE_BYTES_MAX:
        raise Refused("too_long", "message")
    members = parsed(data)
    check_depth(members)
    if not isinstance(members, dict):
        raise Refused("malformed", "message")
    sender, name = checked_sender(members)
    if author is not None and sender != author:
        raise Refused("malformed", "sender_id")
    kind = string(members, "type")
    if not 1 <= size_of(kind) <= TYPE_BYTES_MAX:
        raise Refused("malformed", "type")
    value = {"type": kind, "sender_id": members["sender"]["sender_id"], "display_name": name}
    value["message_id"] = message_id(string(members, "message_id", kind in NEED_ID))
    value["timestamp"] = timestamp(string(members, "timestamp", kind in NEED_ID))
    if "remote_url" in members and kind in delivered.MEDIA_ELSEWHERE:
        value.update(delivered.elsewhere(members, kind))
    elif kind in OWN:
        value.update(OWN[kind](members))
    if kind in TAKE_OPTIONS:
        value.update(options(members))
        value.update(delivered.delivery(members, kind))
    return value


def options(members):
    """What a message that people see may carry beside its kind's own members; what is not there is left out."""
    value = {}
    for name in ("ext", "reply_to"):
        if name in members and not isinstance(members[name], dict):
            raise Refused("malformed", name)
    if "ext" in members:
        value["ext"] = members["ext"]
    if "reply_to" in members:
        value["reply_to"] = message_key(members["reply_to"], "reply_to")
    return value


def checked_sender(members):
    sender = members.get("sender")
    if not isinstance(sender, dict):
        raise Refused("malformed", "sender")
    text = string(sender, "sender_id")
    peer = unbase32(text)
    if len(text) != IDENTIFIER_CHARACTERS or peer is None:
        raise Refused("malformed", "sender_id")
    name, trouble = name_trouble(string(sender, "display_name"))
    if trouble:
        raise Refused("malformed", "display_name", trouble)
    return peer, name


def message_id(text):
    if text is not None and (
        not 1 <= size_of(text) <= MESSAGE_ID_BYTES_MAX or any(is_control(character) for character in text)
    ):
        raise Refused("malformed", "message_id")
    return text


def timestamp(text):
    if text is not None and (len(text) > TIMESTAMP_BYTES_MAX or not TIMESTAMP.fullmatch(text)):
        raise Refused("malformed", "timestamp")
    return text


def one_of(members, words, name):
    word = string(members, "body")
    if word not in words:
        raise Refused("malformed", "body")
    return {name: words[word]}


def media(members, needs_size):
    text = string(members, "media_id")
    if len(text) != IDENTIFIER_CHARACTERS or unbase32(text) is None:
        raise Refused("malformed", "media_id")
    name = string(members, "file_name")
    if size_of(name) > FILE_NAME_BYTES_MAX:
        raise Refused("too_long", "file_name")
    size = members.get("size")
    if "size" in members and (type(size) is not int or not 0 <= size <= COUNTER_MAX):
        raise Refused("malformed", "size")
    if needs_size and size is None:
        raise Refused("malformed", "size", "missing")
    mime = string(members, "mime", required=False)
    if mime is not None and size_of(mime) > MIME_BYTES_MAX:
        raise Refused("too_long", "mime")
    return {"media_id": text, "file_name": name, "size": size, "mime": mime}


def number(members, name, least):
    value = members.get(name)
    if name in members and (type(value) is not int or not least <= value <= PICTURE_NUMBER_MAX):
        raise Refused("malformed", name)
    return value


def other_media(members, name):
    text = string(members, name, required=False)
    if text is not None and (len(text) != IDENTIFIER_CHARACTERS or unbase32(text) is None):
        raise Refused("malformed", name)
    return text


def photo(members):
    value = media(members, False)
    value.update({"width": number(members, "width", 1), "height": number(members, "height", 1)})
    value.update({name: flag(members, name) for name in ("original", "gif")})
    value.update({name: other_media(members, name) for name in ("big_media_id", "thumbnail_media_id")})
    return value


def degrees(members, name, most):
    value = members.get(name)
    if type(value) not in (int, float) or not -most <= value <= most:
        raise Refused("malformed", name)
    return float(value)


def location(members):
    return {
        "latitude": degrees(members, "latitude", LATITUDE_MAX),
        "longitude": degrees(members, "longitude", LONGITUDE_MAX),
        "address": bounded(members, "address", 0, PLACE_BYTES_MAX, required=False),
        "building_name": bounded(members, "building_name", 0, PLACE_BYTES_MAX, required=False),
    }


def custom(members):
    event = bounded(members, "event", 1, EVENT_BYTES_MAX)
    fields = members.get("custom_ext", {})
    if not isinstance(fields, dict) or not all(isinstance(text, str) for text in fields.values()):
        raise Refused("malformed", "custom_ext")
    return {"event": event, "custom_ext": fields}


def voice(members):
    value = media(members, False)
    value["duration"] = number(members, "duration", 0)
    if value["duration"] is None:
        raise Refused("malformed", "duration", "missing")
    return value


def video(members):
    value = media(members, False)
    value["duration"] = number(members, "duration", 0)
    if value["duration"] is None:
        raise Refused("malformed", "duration", "missing")
    value.update({"width": number(members, "width", 1), "height": number(members, "height", 1)})
    value["thumbnail_media_id"] = other_media(members, "thumbnail_media_id")
    return value


def combine(members):
    value = {
        "title": bounded(members, "title", 1, TITLE_BYTES_MAX),
        "summary": bounded(members, "summary", 0, SUMMARY_BYTES_MAX),
        "compatible_text": bounded(members, "compatible_text", 1, SUMMARY_BYTES_MAX),
        "media_id": identifier(members, "media_id")[0], "size": counter(members, "size"),
    }
    if value["size"] is None:
        raise Refused("malformed", "size", "missing")
    if value["size"] > BUNDLE_BYTES_MAX:
        raise Refused("too_long", "size")
    value["levels"] = counter(members, "levels", 1, LEVELS_MAX)
    if value["levels"] is None:
        raise Refused("malformed", "levels", "missing")
    return value


def bundle(data, levels):
    """The checked messages of a combined one, which announced so many levels."""
    if len(data) > BUNDLE_BYTES_MAX:
        raise Refused("too_long", "bundle")
    if data and not data.endswith(b"\n"):
        raise Refused("malformed", "bundle")
    lines = data.split(b"\n")[:-1]
    if len(lines) > BUNDLE_MESSAGES_MAX:
        raise Refused("too_many", "messages")
    found = [message(line) for line in lines]
    if not found:
        raise Refused("malformed", "messages")
    for value in found:
        if value["message_id"] is None:
            raise Refused("malformed", "message_id")
        if value["type"] not in COMBINED:
            raise Refused("malformed", "type")
    most = 1 + max(value.get("levels", 0) if value["type"] == "combine" else 0 for value in found)
    if most > min(levels, LEVELS_MAX):
        raise Refused("too_many", "levels")
    return found


def identifier(members, name, required=True):
    """The 32 bytes of a text of base32."""
    text = string(members, name, required)
    if text is None:
        return None
    data = unbase32(text)
    if len(text) != IDENTIFIER_CHARACTERS or data is None:
        raise Refused("malformed", name)
    return text, data


def counter(members, name, least=0, most=COUNTER_MAX):
    value = members.get(name)
    if name in members and (type(value) is not int or not least <= value <= most):
        raise Refused("malformed", name)
    return value


def joined(members):
    data = unbase32(sized(members, "grant", GRANT_CHARACTERS_MAX))
    try:
        if data is not None:
            return {"grant": objects.grant(data)}
    except Refused:
        pass
    raise Refused("malformed", "grant")


def heads(members):
    pairs = members.get("heads")
    if not isinstance(pairs, list):
        raise Refused("malformed", "heads")
    if len(pairs) > HEADS_MAX:
        raise Refused("too_many", "heads")
    found = []
    for pair in pairs:
        if not (
            isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and LOG.fullmatch(pair[0])
            and type(pair[1]) is int and 1 <= pair[1] <= COUNTER_MAX and not (found and found[-1]["log"] >= pair[0])
        ):
            raise Refused("malformed", "heads")
        found.append({"log": pair[0], "number": pair[1]})
    return found


def role(members):
    value = {"target": identifier(members, "target")[0], "role": string(members, "role")}
    if value["role"] not in ROLES:
        raise Refused("malformed", "role")
    value["until"] = counter(members, "until")
    if value["until"] is not None and value["role"] != "muted":
        raise Refused("malformed", "until")
    value["heads"] = heads(members)
    return value


def generation(members):
    value = {"number": counter(members, "number", 1, GENERATION_MAX)}
    if value["number"] is None:
        raise Refused("malformed", "number", "missing")
    value["hash"] = identifier(members, "hash")[1].hex()
    return value


def token(members):
    text = sized(members, "token", TOKEN_BYTES_MAX)
    if not text:
        raise Refused("malformed", "token")
    return {"token": text}


def organiser(members):
    key = identifier(members, "key", required=False)
    return {"key": key[0] if key else None}


def attribute(members):
    value = {"key": bounded(members, "key", 1, KEY_BYTES_MAX)}
    value["value"] = sized(members, "value", VALUE_BYTES_MAX) if "value" in members else None
    value["until_leave"] = flag(members, "until_leave")
    if value["until_leave"] and value["value"] is None:
        raise Refused("malformed", "until_leave")
    value["overwrite"] = flag(members, "overwrite") if "overwrite" in members else True
    value["replaces"] = string(members, "replaces", required=False)
    if value["replaces"] is not None and (value["overwrite"] or not LOG.fullmatch(value["replaces"])):
        raise Refused("malformed", "replaces")
    return value


def message_key(value, field):
    """What names a message everywhere."""
    if not isinstance(value, dict):
        raise Refused("malformed", field)
    peer, identifier = string(value, "sender_id"), string(value, "message_id")
    if len(peer) != IDENTIFIER_CHARACTERS or unbase32(peer) is None:
        raise Refused("malformed", field)
    try:
        message_id(identifier)
    except Refused:
        raise Refused("malformed", field) from None
    return {"sender_id": peer, "message_id": identifier}


def edit(members):
    value = {"target": message_key(members.get("target"), "target")}
    body = string(members, "body", required=False)
    if body is not None:
        if not body or "event" in members:
            raise Refused("malformed", "body")
        value["body"] = body
    elif "event" in members:
        value.update(custom(members))
    value["ext"] = members.get("ext")
    if "ext" in members and not isinstance(value["ext"], dict):
        raise Refused("malformed", "ext")
    if len(value) == 2 and value["ext"] is None:
        raise Refused("malformed", "body")
    return value


def switched(members):
    if not isinstance(members.get("on"), bool):
        raise Refused("malformed", "on")
    return {"on": members["on"]}


def react(members):
    return {
        "target": message_key(members.get("target"), "target"),
        "emoji": bounded(members, "emoji", 1, EMOJI_BYTES_MAX), **switched(members)}


def read(members):
    targets = members.get("targets")
    if not isinstance(targets, list) or not targets:
        raise Refused("malformed", "targets")
    if len(targets) > READ_TARGETS_MAX:
        raise Refused("too_many", "targets")
    found = [message_key(target, "targets") for target in targets]
    if len({(target["sender_id"], target["message_id"]) for target in found}) < len(found):
        raise Refused("malformed", "targets")
    return {"targets": found}


OWN = {
    "attribute": attribute,
    "typing": lambda members: one_of(members, {"true": True, "false": False}, "typing"),
    "recall": lambda members: {"target": message_key(members.get("target"), "target")},
    "edit": edit,
    "react": react,
    "pin": lambda members: {"target": message_key(members.get("target"), "target"), **switched(members)},
    "read": read,
    "joined": joined,
    "role": role,
    "lower_hand": lambda members: {"target": identifier(members, "target")[0], "heads": heads(members)},
    "announcement": lambda members: {"body": sized(members, "body", ANNOUNCEMENT_BYTES_MAX)},
    "generation": generation,
    "token": token,
    "organiser": organiser,
    "status": lambda members: one_of(members, {"online": True, "offline": False}, "online"),
    "raise_hand": lambda members: one_of(members, {"true": True, "false": False}, "raised"),
    "text": lambda members: {"body": string(members, "body")},
    "photo": photo,
    "video": video,
    "voice": voice,
    "location": location,
    "custom": custom,
    "combine": combine,
    "cmd": lambda members: delivered.command(members),
    "file": lambda members: media(members, True),
}
