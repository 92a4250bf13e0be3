"""Every constant of the Python peer stands in the specification: what a fresh reader would ask about each number."""
import ast
import pathlib
import re
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PAGES = HERE.parent.parent / "Sources" / "Wire" / "Wire.docc"
# FIPS 197 and SP 800-38D, not the protocol.
NOT_OURS = {"aesgcm.py"}
# What a peer decides for itself, or its system does; each with the reason why no page can know it.
OWN_CHOICES = {
    ("links.py", 0x8915): "linux/sockios.h, SIOCGIFADDR",
    ("links.py", 49): "linux/in.h, IP_MULTICAST_ALL",
    ("links.py", 24): "the address in what the ioctl gives",
    ("store.py", 0o700): "a folder for its owner only",
    ("store.py", 0o600): "a file for its owner only",
    ("members.py", 0.25): "how often this peer looks whom it has not heard",
    ("media.py", 300): "how long the caller of this library waits for a file",
}


def constants(path):
    """Numbers and byte strings of letters; a sum or shift of numbers is one number. With the line of each."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = set()
    for node in ast.walk(tree):
        if node in inside:
            continue
        if isinstance(node, ast.BinOp) and all(
            isinstance(part, (ast.BinOp, ast.Constant, ast.operator)) for part in ast.walk(node)
        ):
            inside.update(ast.walk(node))
            yield node.lineno, eval(compile(ast.Expression(node), str(path), "eval"))
        elif isinstance(node, ast.Constant):
            yield node.lineno, node.value


def is_checked(value):
    if isinstance(value, bytes):
        return re.search(rb"[A-Za-z]{2}", value) is not None
    # 0, 1 and 2 are in every program.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value not in (0, 1, 2)


def spellings(value):
    """As the pages write it: with or without commas, in hexadecimal, seconds as milliseconds, powers of two."""
    if isinstance(value, bytes):
        return [value.rstrip(b"\0").decode("ascii")]
    found = [
        f"{value:,}", f"{value:g}", f"{value * 1000:,g}", f"{value * 1000:,.0f}", f"{value * 100:g} %",
        f"{value * 100:g} to"]
    if isinstance(value, int):
        # The last as an index stands, h₅₂₀₀.
        found += [f"{value:02x}", f"{value:04X}", str(value)]
        found.append("h" + str(value).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")))
        if value % (1 << 20) == 0:
            found.append(f"{value >> 20} MiB")
        power = (value + 1).bit_length() - 1
        if value + 1 == 1 << power:
            found.append("2" + str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")) + " − 1")
    return found


class ConstantTests(unittest.TestCase):
    def test_every_constant_is_in_the_text(self):
        text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("*.md")))
        checked, excused = 0, set()
        for path in sorted(HERE.glob("parley_*/*.py")):
            for line, value in constants(path) if path.name not in NOT_OURS else ():
                if not is_checked(value):
                    continue
                if (path.name, value) in OWN_CHOICES:
                    excused.add((path.name, value))
                    continue
                found = any(
                    re.search(rf"(?<![\w,.]){re.escape(spelling)}(?![\w])", text) for spelling in spellings(value))
                with self.subTest(f"{path.parent.name}/{path.name}:{line}"):
                    self.assertTrue(found, f"{value!r} is in no page of the specification")
                checked += 1
        self.assertGreater(checked, 250)
        self.assertEqual(excused, set(OWN_CHOICES), "an excuse that nothing needs")


if __name__ == "__main__":
    unittest.main()
