"""AES-256-GCM opened, as sessions use it. Slow and not constant-time: PyNaCl has none, and vectors are no secrets."""
import hmac

import nacl.exceptions


def _tables():
    """The S-box of FIPS 197, from the powers of 3 in its field."""
    powers, value = [], 1
    for _ in range(255):
        powers.append(value)
        value ^= (value << 1) ^ (0x11B if value & 0x80 else 0)
    box = [0x63] * 256
    for exponent, value in enumerate(powers):
        inverse = powers[-exponent % 255]
        turned = inverse | inverse << 8
        box[value] = (inverse ^ turned >> 7 ^ turned >> 6 ^ turned >> 5 ^ turned >> 4) & 0xFF ^ 0x63
    return box


BOX = _tables()


def _double(value):
    return (value << 1 ^ (0x11B if value & 0x80 else 0)) & 0xFF


class AESGCM:
    name = "AESGCM"

    def __init__(self, key):
        words, constant = [list(key[at : at + 4]) for at in range(0, 32, 4)], 1
        while len(words) < 60:
            word = list(words[-1])
            if len(words) % 8 == 0:
                word = [BOX[byte] for byte in word[1:] + word[:1]]
                word[0] ^= constant
                constant = _double(constant)
            elif len(words) % 8 == 4:
                word = [BOX[byte] for byte in word]
            words.append([a ^ b for a, b in zip(word, words[-8])])
        self.rounds = [sum(words[at : at + 4], []) for at in range(0, 60, 4)]
        self.hash_key = int.from_bytes(self._block(bytes(16)), "big")

    def _block(self, data):
        state = [a ^ b for a, b in zip(data, self.rounds[0])]
        for number in range(1, 15):
            state = [BOX[byte] for byte in state]
            state = [state[(at + 4 * (at % 4)) % 16] for at in range(16)]
            if number < 14:
                mixed = []
                for at in range(0, 16, 4):
                    column = state[at : at + 4]
                    every = column[0] ^ column[1] ^ column[2] ^ column[3]
                    mixed += [column[i] ^ every ^ _double(column[i] ^ column[(i + 1) % 4]) for i in range(4)]
                state = mixed
            state = [a ^ b for a, b in zip(state, self.rounds[number])]
        return bytes(state)

    def _ghash(self, data):
        result = 0
        for at in range(0, len(data), 16):
            result ^= int.from_bytes(data[at : at + 16].ljust(16, b"\0"), "big")
            product, factor = 0, self.hash_key
            for bit in range(127, -1, -1):
                if result >> bit & 1:
                    product ^= factor
                factor = factor >> 1 ^ (0xE1 << 120 if factor & 1 else 0)
            result = product
        return result

    def open(self, sealed, associated, counter):
        nonce = bytes(4) + counter.to_bytes(8, "big")
        text, tag = sealed[:-16], sealed[-16:]
        padded = b"".join(part + bytes(-len(part) % 16) for part in (associated, text))
        lengths = (8 * len(associated)).to_bytes(8, "big") + (8 * len(text)).to_bytes(8, "big")
        mask = int.from_bytes(self._block(nonce + (1).to_bytes(4, "big")), "big")
        expected = (self._ghash(padded + lengths) ^ mask).to_bytes(16, "big")
        if not hmac.compare_digest(expected, tag):
            raise nacl.exceptions.CryptoError("the tag does not fit")
        plain = b""
        for number, at in enumerate(range(0, len(text), 16), 2):
            stream = self._block(nonce + number.to_bytes(4, "big"))
            plain += bytes(a ^ b for a, b in zip(text[at : at + 16], stream))
        return plain
