"""Members of JSON objects, read one by one (Messages.md)."""
from .reading import Refused


def string(members, name, required=True):
    if name not in members:
        if required:
            raise Refused("malformed", name, "missing")
        return None
    if not isinstance(members[name], str):
        raise Refused("malformed", name, "not a string")
    return members[name]


def size_of(text):
    return len(text.encode("utf-8"))


def flag(members, name):
    value = members.get(name, False)
    if type(value) is not bool:
        raise Refused("malformed", name)
    return value


def bounded(members, name, least, most, required=True):
    """A text of so many bytes."""
    text = string(members, name, required)
    if text is not None and size_of(text) > most:
        raise Refused("too_long", name)
    if text is not None and size_of(text) < least:
        raise Refused("malformed", name)
    return text


def sized(members, name, most):
    text = string(members, name)
    if size_of(text) > most:
        raise Refused("too_long", name)
    return text
