"""Values of the vectors of what is done to messages (Conversation.md)."""


def values(draw, peer, common, texts):
    """One of each type at least, on messages of this author."""
    target = {"sender_id": peer, "message_id": f"m-{draw.below(1_000)}"}
    yield {"type": "recall", **common, "target": target}
    yield {"type": "edit", **common, "target": target, "body": "b" + draw.of(texts), "ext": draw.of(({}, {"n": 1}))}
    yield {"type": "edit", **common, "target": target, "event": "seat", "custom_ext": draw.of(({}, {"row": "3"})),
           "ext": None}
    yield {"type": "react", **common, "target": target, "emoji": draw.of(("👍", "x" * 64)), "on": draw.below(2) == 0}
    yield {"type": "pin", **common, "target": target, "on": draw.below(2) == 0}
    yield {"type": "read", **common, "targets": [
        {"sender_id": peer, "message_id": f"m-{at}"} for at in range(draw.of((1, 64)))]}
