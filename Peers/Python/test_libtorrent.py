"""Roots and piece layers equal those that libtorrent computes for the same files as BitTorrent v2 (BEP 52)."""
import contextlib
import json
import os
import pathlib
import tempfile
import unittest
import warnings

try:
    import libtorrent
except ImportError:
    libtorrent = None

VECTORS = pathlib.Path(__file__).resolve().parent.parent / "Vectors" / "trees.json"
PIECE = 1 << 20
# The roots of these many zero bytes, which the Swift tests of large files have as constants too.
LARGE = {
    (4 << 30) - 1: "81f0427a63a42dafae2b5f8eff855be69df1d9c9107cbe85c2730bef7291c238",
    4 << 30: "199a232ea3cc6efa07a08151b47f9de9c8401c7326c32c186f34797146545a97",
    (4 << 30) + 1: "c499088c78e453f347e971c5149fc2b74a5f303548b9c009338cc24fee16eb01",
}


def content(size):
    """That of the vectors: see "Hash tree" in Wire.docc/Media.md."""
    return bytes((131 * i + 17 * (i >> 8) + 7 * (i >> 16)) & 0xFF for i in range(size))


def torrent(path):
    """The v2 metadata of a file or folder, by libtorrent alone."""
    with warnings.catch_warnings():
        # Newer versions call deprecated what 2.0 has alone.
        warnings.simplefilter("ignore", DeprecationWarning)
        storage = libtorrent.file_storage()
        libtorrent.add_files(storage, path)
        creator = libtorrent.create_torrent(storage, PIECE, libtorrent.create_torrent.v2_only)
        libtorrent.set_piece_hashes(creator, os.path.dirname(path))
        return creator.generate()


def leaves(tree, path=()):
    for name, node in tree.items():
        if name == b"":
            yield path, node
        else:
            yield from leaves(node, path + (name.decode(),))


@unittest.skipIf(libtorrent is None, "libtorrent is not installed (python3-libtorrent, or libtorrent from PyPI)")
class LibtorrentTests(unittest.TestCase):
    def setUp(self):
        with contextlib.ExitStack() as stack:
            self.folder = stack.enter_context(tempfile.TemporaryDirectory())
            self.addCleanup(stack.pop_all().close)

    def check(self, vector, node, layers):
        self.assertEqual(node[b"length"], vector["size"])
        # BEP 52 gives an empty file no root; ours is zeros.
        self.assertEqual(node.get(b"pieces root", bytes(32)).hex(), vector["root"])
        layer = layers.get(node.get(b"pieces root"), b"")
        if vector["size"] > PIECE:
            self.assertEqual(layer.hex(), "".join(vector["piece_hashes"]))
        else:
            # A file of one piece has no layer of its own: its root is the hash of its piece.
            self.assertEqual(layer, b"")

    def test_trees(self):
        vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
        self.assertGreater(len(vectors), 10)
        for vector in vectors:
            with self.subTest(vector["name"]):
                path = os.path.join(self.folder, "f")
                pathlib.Path(path).write_bytes(content(vector["size"]))
                if vector["size"] == 0:
                    continue  # libtorrent makes no torrent of nothing; test_folder has empty files.
                metadata = torrent(path)
                [(_, node)] = leaves(metadata[b"info"][b"file tree"])
                self.check(vector, node, metadata.get(b"piece layers", {}))

    def test_folder(self):
        """In a folder each file has its own tree, and the order is that of our manifest."""
        root = pathlib.Path(self.folder, "folder")
        expected = {}
        for vector in json.loads(VECTORS.read_text(encoding="utf-8")):
            path = ("deep" if vector["size"] % 2 else "b-", f"{vector['size']}.bin")
            expected[path] = vector
            file = root.joinpath(*path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content(vector["size"]))
        metadata = torrent(str(root))
        found = dict(leaves(metadata[b"info"][b"file tree"]))
        self.assertEqual(list(found), sorted(expected, key=lambda path: [part.encode() for part in path]))
        for path, node in found.items():
            with self.subTest(path):
                self.check(expected[path], node, metadata[b"piece layers"])

    @unittest.skipUnless(os.environ.get("PARLEY_LONG"), "PARLEY_LONG is not set: 12 GiB to be hashed")
    def test_large(self):
        for size, root in LARGE.items():
            with self.subTest(size):
                path = os.path.join(self.folder, "large")
                with open(path, "wb") as file:
                    file.truncate(size)
                [(_, node)] = leaves(torrent(path)[b"info"][b"file tree"])
                self.assertEqual(node[b"pieces root"].hex(), root)


if __name__ == "__main__":
    unittest.main()
