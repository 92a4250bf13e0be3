"""Every constant of the decoder stands in the specification."""
import ast
import pathlib
import re
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PAGES = HERE.parent.parent / "Sources" / "Wire" / "Wire.docc"
# FIPS 197 and SP 800-38D, not the protocol.
NOT_OURS = {"aesgcm.py"}


def constants(path):
    """Numbers given a name in capitals, and every byte string of letters."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names = [part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            if all(name.isupper() for name in names):
                yield from ((names[0], leaf.value) for leaf in ast.walk(node.value) if isinstance(leaf, ast.Constant))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes) and re.search(rb"[A-Za-z]{2}", node.value):
            yield "bytes", node.value


def spellings(value):
    if isinstance(value, bytes):
        return [value.rstrip(b"\0").decode("ascii")]
    return [f"{value:,}", str(value), f"{value:02x}"]


class ConstantTests(unittest.TestCase):
    def test_every_constant_is_in_the_text(self):
        text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("*.md")))
        checked = 0
        for path in sorted((HERE / "parley_wire").glob("*.py")):
            for name, value in constants(path) if path.name not in NOT_OURS else ():
                if isinstance(value, bool) or not isinstance(value, (int, bytes)):
                    continue
                found = any(
                    re.search(rf"(?<![\w,]){re.escape(spelling)}(?![\w])", text) for spelling in spellings(value))
                with self.subTest(f"{path.name}: {name}"):
                    self.assertTrue(found, f"{value!r} is in no page of the specification")
                checked += 1
        self.assertGreater(checked, 60)


if __name__ == "__main__":
    unittest.main()
