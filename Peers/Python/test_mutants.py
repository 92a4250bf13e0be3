"""Changes every number and text of the code that derives and writes bytes, one by one: a vector must notice."""
import ast
import importlib
import importlib.abc
import importlib.util
import json
import pathlib
import sys
import unittest

import make_vectors

HERE = pathlib.Path(__file__).resolve().parent
# What makes bytes. Readers are tried with turned bytes instead (test_vectors, MutationTests).
MODULES = {
    "parley_wire.writing": None,
    "parley_wire.keys": {
        "blake2b", "first8", "base32", "unbase32", "Identity", "fingerprint", "object_message", "open", "__init__",
        "tag", "proof", "bucket", "bucket_digest", "heads_digest", "seal", "unseal"},
    "parley_wire.media": {"power_of_two", "merkle", "piece_hash", "root", "piece_hashes", "sha256"},
}
OURS = ("drawing", "make_handshakes", "parley_wire", "parley_peer", "again", "make_vectors")
# Vectors that take long; of trees there are short ones below.
SLOW = {"malformed", "trees"}
FILES = [name for name in make_vectors.FILES if name not in SLOW]
TREE_SIZES = (0, 1, 16_384, 16_385, 40_000, 1_048_576, 1_048_577, 3_145_729)


class Mutant(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module with its code changed."""

    def __init__(self, name, code):
        self.name, self.code = name, code

    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name == self.name else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(self.code, module.__dict__)


def source(name):
    return (HERE / name.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")


def constants(tree, functions):
    """Those that are values, of these functions or of all: documentation is not, nor are true and false."""
    documentation = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    bodies = [tree] if functions is None else [
        node for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in functions]
    found = {
        node: None for body in bodies for node in ast.walk(body)
        if isinstance(node, ast.Constant) and node not in documentation and type(node.value) in (int, str, bytes)}
    return list(found)


def changed(value):
    if isinstance(value, int):
        return value + 1
    last = bytes([value[-1] ^ 1]) if value and isinstance(value, bytes) else b"\1"
    return value[:-1] + last if isinstance(value, bytes) else value[:-1] + chr(ord(value[-1:] or "a") ^ 1)


def made(files):
    """What a fresh import of everything makes, or the error it ends with."""
    saved = {name: module for name, module in sys.modules.items() if name.split(".")[0] in OURS}
    for name in saved:
        del sys.modules[name]
    try:
        module = importlib.import_module("make_vectors")
        # Without the passphrases, which take long.
        module.FILES["channels"] = lambda: [
            {"name": name, **vars(module.keys.Channel.open(name, room))} for name in "ab" for room in (False, True)]
        for name in files:
            yield json.dumps(list(module.FILES[name]()), default=bytes.hex)
        yield module.writing.json_text({"a": [None, True, -1, 2.5, "я\n"], "b": [{}]})
        yield [module.media.root(module.media.piece_hashes(bytes(size))).hex() for size in TREE_SIZES]
    except Exception as error:
        yield repr(error)
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] in OURS]:
            del sys.modules[name]
        sys.modules.update(saved)


def is_noticed(name, tree, golden):
    mutant = Mutant(name, compile(tree, name, "exec"))
    sys.meta_path.insert(0, mutant)
    try:
        return any(text != expected for text, expected in zip(made(FILES), golden))
    finally:
        sys.meta_path.remove(mutant)


class MutantTests(unittest.TestCase):
    def test_every_change_of_what_writes_is_noticed(self):
        golden, count = list(made(FILES)), 0
        self.assertEqual(len(golden), len(FILES) + 2)
        for name, functions in MODULES.items():
            tree = ast.parse(source(name))
            for node in constants(tree, functions):
                before, node.value = node.value, changed(node.value)
                with self.subTest(f"{name}:{node.lineno}: {before!r}"):
                    self.assertTrue(is_noticed(name, tree, golden), "no vector notices the change")
                node.value = before
                count += 1
        self.assertGreater(count, 160)
        print(f"mutants tried: {count}")


if __name__ == "__main__":
    unittest.main()
