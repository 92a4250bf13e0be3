"""Messages with options, commands and media elsewhere, for make_vectors."""
from parley_wire import keys


def message_values(draw, common, file, size, texts):
    yield {"type": "cmd", **common, "action": draw.of(("refresh", "x" * 128)), "params": draw.of(({}, {"page": "2"}))}
    yield {"type": "text", **common, "body": draw.of(texts), **delivery_values(draw, texts)}
    yield {"type": "photo", **common, "remote_url": "https://media.example/" + "p" * draw.below(2_000),
           "file_name": file["file_name"], "size": file["size"], "mime": file["mime"], **size}


def delivery_values(draw, texts):
    """Options in the order in which they are written; what is false is not there."""
    languages = ["de", "zh-Hans", "sr-Latn-RS"][draw.below(3) :]
    values = {
        "needs_receipt": draw.below(2) == 0, "priority": draw.of(("high", "low")),
        "webhook_env": draw.of(("a", "Stage123")), "broadcast": draw.below(2) == 0, "target_languages": languages,
        "translations": {languages[0]: draw.of(texts)}, "online_only": draw.below(2) == 0,
        "channel_id": keys.base32(draw.bytes(32)),
        "receivers": [keys.base32(draw.bytes(32)) for _ in range(draw.of((1, 20)))]}
    return {name: value for name, value in values.items() if value is not False}
