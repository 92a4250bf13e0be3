"""Files and folders: what is shared of them, and where what is downloaded goes (Media.md)."""
import os
import pathlib
import unicodedata

from parley_wire import media, writing

FOLDER_MIME = "inode/directory"


class Content:
    """What a media ID stands for, with the hashes of its pieces and which of them are here."""

    def __init__(self, manifest_bytes, hashes=None):
        self.manifest_bytes = manifest_bytes
        self.media_id = media.sha256(manifest_bytes)
        value = media.manifest(manifest_bytes)
        self.mime, self.files = value["mime"] or "", value["files"]
        self.is_folder = self.mime == FOLDER_MIME or len(self.files) > 1 or len(self.files[0]["path"]) > 1
        self.first_pieces, count = [], 0
        for file in self.files:
            self.first_pieces.append(count)
            count += self.piece_count(file)
        self.count = count
        self.hashes = hashes if hashes is not None else [self.own_hashes(file) for file in self.files]
        self.here = set()
        self.path = None
        self.paths = None

    @staticmethod
    def piece_count(file):
        return -(-file["size"] // media.PIECE_BYTES)

    def own_hashes(self, file):
        """Of a file of one piece the root is the hash; of others they must be asked for."""
        count = self.piece_count(file)
        return [] if count == 0 else [bytes.fromhex(file["root"])] if count == 1 else [None] * count

    def knows_hashes(self):
        return all(None not in hashes for hashes in self.hashes)

    def place(self, piece):
        """File, and piece of that file, of a piece counted through all files."""
        number = max(at for at, first in enumerate(self.first_pieces)
                     if first <= piece and self.piece_count(self.files[at]))
        return number, piece - self.first_pieces[number]

    def piece_size(self, number, piece):
        return min(media.PIECE_BYTES, self.files[number]["size"] - piece * media.PIECE_BYTES)

    def verifies(self, number, piece, data):
        only = self.piece_count(self.files[number]) == 1
        return media.piece_hash(data, only) == self.hashes[number][piece]

    def is_at(self, path):
        self.path = pathlib.Path(path)
        self.paths = [self.path.joinpath(*parts) for parts in self.safe_paths()] if self.is_folder else [self.path]

    def safe_paths(self):
        """Components that are safe on this disk; what becomes the same is numbered."""
        taken, found = set(), []
        for file in self.files:
            parts = [safe_name(name) for name in file["path"]]
            plain, number = parts[-1], 1
            while "/".join(parts).casefold() in taken:
                number += 1
                parts[-1] = f"{plain} ({number})"
            taken.add("/".join(parts).casefold())
            found.append(parts)
        return found

    def read(self, number, offset, count):
        """The bytes, or None when the file is not what it was."""
        try:
            with open(self.paths[number], "rb") as file:
                data = os.pread(file.fileno(), count, offset)
                return data if len(data) == count else None
        except OSError:
            return None


def safe_name(name):
    shown = "".join("_" if unicodedata.category(sign)[0] == "C" or sign in "/\\" else sign for sign in name)
    return "_" + shown if shown in ("", ".", "..") else shown


def shared(path, mime):
    """Reads a file or a folder once, and hashes it."""
    path = pathlib.Path(path)
    if path.is_dir():
        found = sorted(
            (inner for inner in path.rglob("*") if inner.is_file() and not inner.is_symlink()),
            key=lambda inner: [part.encode("utf-8") for part in inner.relative_to(path).parts])
        names = [list(inner.relative_to(path).parts) for inner in found]
        mime = FOLDER_MIME
    else:
        found, names = [path], [[path.name]]
    files, hashes = [], []
    for inner, parts in zip(found, names):
        size, pieces = inner.stat().st_size, []
        with open(inner, "rb") as file:
            while piece := file.read(media.PIECE_BYTES):
                pieces.append(media.piece_hash(piece, size <= media.PIECE_BYTES))
        hashes.append(pieces)
        files.append((parts, size, media.root(pieces), bool(inner.stat().st_mode & 0o100)))
    content = Content(writing.manifest(mime, files), hashes)
    content.path, content.paths = path, found
    content.here = set(range(content.count))
    return content


def uncles(hashes, first, count):
    """The hashes beside the way from a run of pieces to the root, the lowest first."""
    found, filler = [], media.merkle([media.ZERO], media.LEAVES_PER_PIECE, media.ZERO)
    level = hashes + [filler] * (media.power_of_two(len(hashes)) - len(hashes))
    width, at = 1, first // count
    while len(level) > 1:
        if width >= count:
            found.append(level[at ^ 1])
            at //= 2
        level = [media.sha256(level[i] + level[i + 1]) for i in range(0, len(level), 2)]
        width *= 2
    return found


def is_run_of(root, piece_count, first, count, answer):
    """Whether hashes of a run and its uncles lead to the root; the hashes of the run."""
    filler = media.merkle([media.ZERO], media.LEAVES_PER_PIECE, media.ZERO)
    there = max(0, min(count, piece_count - first))
    run, beside = answer[:there], answer[there:]
    steps = (media.power_of_two(piece_count) // count).bit_length() - 1
    if len(run) != there or len(beside) != steps:
        return None
    found, at = media.merkle(run, count, filler), first // count
    for uncle in beside:
        found = media.sha256(found + uncle) if at % 2 == 0 else media.sha256(uncle + found)
        at //= 2
    return run if found == root else None
