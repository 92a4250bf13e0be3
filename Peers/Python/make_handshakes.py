"""Handshakes for the vectors, both ends of each."""
import again
from drawing import Draw
from parley_wire import keys, writing


def handshake_vectors(suite, purpose):
    """Both ends played by noiseprotocol, with keys given."""
    from parley_peer import secure

    draw = Draw(f"handshake {suite}")
    names, shared = ["会議室", "kitchen", "a"], ["会議室", "a"]
    offered = [keys.Channel.open(name) for name in names]
    ephemeral, seeds = ([draw.bytes(32) for _ in range(2)] for _ in range(2))
    instances = [draw.u64(), draw.u64()]
    ours, theirs = writing.preface(b"S", purpose, suite), writing.preface(b"R", purpose, suite)
    initiator = secure.noise(suite, ours + theirs, True, ephemeral[0])
    responder = secure.noise(suite, ours + theirs, False, ephemeral[1])
    hello = ours + initiator.write_message()
    responder.read_message(hello[8:])
    answer = theirs + responder.write_message()
    initiator.read_message(answer[8:])
    h = initiator.get_handshake_hash()

    def frame(connection, payload):
        sealed = connection.encrypt(payload)
        return len(sealed).to_bytes(2, "big") + sealed

    def proofs(role, channels):
        return bytes([len(channels)]) + b"".join(channel.proof(role, h) for channel in channels)

    def identity(role):
        return writing.identity_proof(keys.Identity(seeds[role]), again.number(instances[role]), role, h)

    both = [channel for channel, name in zip(offered, names) if name in shared]
    offer = frame(initiator, proofs(0, offered))
    acceptance = frame(responder, proofs(1, both) + identity(1))
    introduction = frame(initiator, identity(0))
    payloads = [writing.ping(7), b"", draw.bytes(500)]
    yield {
        "name": "drawn", "purpose": purpose, "suite": suite, "offered_channels": names, "shared_channels": shared,
        "initiator_ephemeral_key": ephemeral[0].hex(), "responder_ephemeral_key": ephemeral[1].hex(),
        "initiator_seed": seeds[0].hex(), "responder_seed": seeds[1].hex(), "initiator_instance": instances[0],
        "responder_instance": instances[1], "hello": hello.hex(), "answer": answer.hex(), "offer": offer.hex(),
        "acceptance": acceptance.hex(), "introduction": introduction.hex(), "handshake_hash": h.hex(),
        "payloads": [payload.hex() for payload in payloads],
        "frames_from_initiator": [frame(initiator, payload).hex() for payload in payloads],
        "frames_from_responder": [frame(responder, payload).hex() for payload in payloads]}
