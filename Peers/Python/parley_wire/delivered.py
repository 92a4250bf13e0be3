"""What messages carry beside what they say, and media that lie elsewhere (Messages.md)."""
import re

from . import messages
from .keys import unbase32
from .reading import Refused

URL_BYTES_MAX = 2_048
WEBHOOK_ENVIRONMENT = re.compile("[A-Za-z0-9]{1,8}")
LANGUAGES_MAX = 16
LANGUAGE_BYTES_MAX = 35
LANGUAGE = re.compile("[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
RECEIVERS_MAX = 20
PRIORITIES = ("high", "normal", "low")
ACTION_BYTES_MAX = 128
RESERVED_ACTIONS = ("em_", "easemob::", "parley.")
# Travel to whoever is there and are never kept.
LIVE = ("status", "cmd", "typing")
MEDIA_ELSEWHERE = ("photo", "voice", "video", "file")


def delivery(members, kind):
    """How it shall be treated; what says nothing is left out."""
    value = {}
    if messages.flag(members, "needs_receipt"):
        value["needs_receipt"] = True
    priority = messages.string(members, "priority", required=False)
    if priority not in (None, *PRIORITIES):
        raise Refused("malformed", "priority")
    if priority not in (None, "normal"):
        value["priority"] = priority
    webhook = messages.string(members, "webhook_env", required=False)
    if webhook is not None:
        if not WEBHOOK_ENVIRONMENT.fullmatch(webhook):
            raise Refused("malformed", "webhook_env")
        value["webhook_env"] = webhook
    if messages.flag(members, "broadcast"):
        value["broadcast"] = True
    if kind == "text":
        value.update(translation(members))
    if messages.flag(members, "online_only"):
        value["online_only"] = True
    value.update(direction(members))
    return value


def translation(members):
    languages, texts = members.get("target_languages"), members.get("translations")
    if "target_languages" in members:
        if not isinstance(languages, list):
            raise Refused("malformed", "target_languages")
        if len(languages) > LANGUAGES_MAX:
            raise Refused("too_many", "target_languages")
        if not languages or not all(is_language(tag) for tag in languages) or len(set(languages)) != len(languages):
            raise Refused("malformed", "target_languages")
    if "translations" in members and not (
        isinstance(texts, dict)
        and all(tag in (languages or ()) and isinstance(text, str) for tag, text in texts.items())
    ):
        raise Refused("malformed", "translations")
    return {name: inner for name, inner in (("target_languages", languages), ("translations", texts)) if inner}


def is_language(tag):
    return isinstance(tag, str) and messages.size_of(tag) <= LANGUAGE_BYTES_MAX and LANGUAGE.fullmatch(tag) is not None


def direction(members):
    """To whom of a channel it is said, as a peer message."""
    if "channel_id" not in members and "receivers" not in members:
        return {}
    channel = messages.string(members, "channel_id", required=False)
    if channel is None or len(channel) != messages.IDENTIFIER_CHARACTERS or unbase32(channel) is None:
        raise Refused("malformed", "channel_id")
    receivers = members.get("receivers")
    if not isinstance(receivers, list):
        raise Refused("malformed", "receivers")
    if len(receivers) > RECEIVERS_MAX:
        raise Refused("too_many", "receivers")
    if not receivers or len(set(map(str, receivers))) != len(receivers) or not all(
        isinstance(peer, str) and len(peer) == messages.IDENTIFIER_CHARACTERS and unbase32(peer) is not None
        for peer in receivers
    ):
        raise Refused("malformed", "receivers")
    return {"channel_id": channel, "receivers": receivers}


def elsewhere(members, kind):
    """A photo, voice, video or file on a server of the application's own."""
    url = messages.bounded(members, "remote_url", 1, URL_BYTES_MAX)
    match = re.fullmatch("(?i:https?)://([!-~]*)", url)
    host = re.split("[/?#]", match[1])[0] if match else ""
    if not host or host.startswith(":") or "@" in host:
        raise Refused("malformed", "remote_url")
    if "media_id" in members:
        raise Refused("malformed", "media_id")
    value = {"remote_url": url, "file_name": messages.bounded(members, "file_name", 0, messages.FILE_NAME_BYTES_MAX)}
    value["size"] = messages.counter(members, "size")
    value["mime"] = messages.bounded(members, "mime", 0, messages.MIME_BYTES_MAX, required=False)
    if kind in ("voice", "video"):
        value["duration"] = messages.number(members, "duration", 0)
        if value["duration"] is None:
            raise Refused("malformed", "duration", "missing")
    if kind != "voice":
        value.update({"width": messages.number(members, "width", 1), "height": messages.number(members, "height", 1)})
    return value


def command(members):
    action = messages.bounded(members, "action", 1, ACTION_BYTES_MAX)
    if action.startswith(RESERVED_ACTIONS):
        raise Refused("malformed", "action")
    params = members.get("params", {})
    if not isinstance(params, dict) or not all(isinstance(text, str) for text in params.values()):
        raise Refused("malformed", "params")
    return {"action": action, "params": params}


def is_live(value):
    """Whether a checked message is for whoever is there."""
    return value["type"] in LIVE or value.get("online_only", False)
