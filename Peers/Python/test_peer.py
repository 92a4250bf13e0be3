"""What of the peer can be seen without a network: windows, holes, floors, runs of piece hashes, names made safe."""
import pathlib
import tempfile
import unittest

import make_vectors
from parley_peer import attributes, files, logs, members, store
from parley_wire import keys, media, messages, objects, writing

KITCHEN = keys.Channel.open("kitchen")
ANA = keys.Identity(bytes([1]) * 32)
RUN = 7


def entry(number, body="Hello"):
    json = writing.kept(ANA.peer_id, "Ana", f"m-{number}", "2021-03-12T09:05:16Z", "text", {"body": body})
    return writing.entry(ANA, KITCHEN.channel_id, RUN, number, number, 0, False, [(messages.KINDS["text"], json)])


class WindowTests(unittest.TestCase):
    def test_each_counter_counts_once_and_old_ones_not_at_all(self):
        window = members.Window()
        self.assertTrue(window.take(5))
        self.assertFalse(window.take(5))
        self.assertTrue(window.take(3))
        self.assertTrue(window.take(5 + members.WINDOW))
        self.assertFalse(window.take(5), "64 or more below the highest")
        self.assertTrue(window.take(6))
        self.assertFalse(window.take(6))
        self.assertTrue(window.take(1 << 40))
        self.assertFalse(window.take(5 + members.WINDOW))


class AllowanceTests(unittest.TestCase):
    def test_no_more_than_at_once_and_more_after_a_pause(self):
        allowance = members.Allowance(8, 32)
        begun = allowance.asked_at
        self.assertEqual(sum(allowance.take(begun) for _ in range(50)), 32)
        self.assertEqual(sum(allowance.take(begun + 2) for _ in range(50)), 16)


class AttributeTests(unittest.TestCase):
    """As AttributeTests of the Swift side has them."""

    def standing(self, *told, runs=None):
        ana, ben = ANA.peer_id, keys.Identity(bytes([2]) * 32).peer_id
        values = []
        for lamport, (who, own) in enumerate(told, 1):
            author = {"ana": ana, "ben": ben}[who]
            json = writing.kept(author, who, "m", "2021-03-12T09:05:16Z", "attribute", own)
            values.append({
                "hidden": True, "author": author, "log": RUN, "number": lamport, "lamport": lamport,
                "messages": [{"kind": messages.KINDS["attribute"], "body": json.decode("utf-8")}]})
        found = attributes.standing(values, {ana: RUN, ben: RUN} if runs is None else runs)
        return {act["key"]: act["value"] for act in found}

    def test_what_comes_later_stands_unless_it_is_not_to_overwrite(self):
        seat = {"key": "seat", "value": "Ana"}
        self.assertEqual(self.standing(("ana", seat), ("ben", {**seat, "value": "Ben"})), {"seat": "Ben"})
        self.assertEqual(
            self.standing(("ana", seat), ("ben", {**seat, "value": "Ben", "overwrite": False})), {"seat": "Ana"})
        self.assertEqual(self.standing(("ana", seat), ("ben", {"key": "seat"})), {})

    def test_what_was_set_until_its_author_leaves_goes_and_can_be_replaced(self):
        seat = {"key": "seat", "value": "Ana", "until_leave": True}
        self.assertEqual(self.standing(("ana", seat)), {"seat": "Ana"})
        self.assertEqual(self.standing(("ana", seat), runs={}), {})
        replaced = {"key": "seat", "value": "Ben", "overwrite": False, "replaces": f"{RUN:016x}"}
        self.assertEqual(self.standing(("ana", seat), ("ben", replaced), runs={}), {"seat": "Ben"})
        self.assertEqual(
            self.standing(("ana", seat), ("ben", {**replaced, "replaces": f"{RUN + 1:016x}"})), {"seat": "Ana"})

    def test_a_hundred_stand(self):
        told = [("ana", {"key": f"{number:03}", "value": ""}) for number in range(101)]
        found = self.standing(*told)
        self.assertEqual(len(found), 100)
        self.assertNotIn("100", found)


class LogTests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.store = store.Store(self.folder.name)
        self.logs = logs.Logs(self.store, KITCHEN.channel_id)

    def tearDown(self):
        self.store.close()
        self.folder.cleanup()

    def keep(self, *numbers):
        self.logs.keep([(ANA.peer_id, RUN, number, entry(number)) for number in numbers])

    def test_holes_are_named_and_filled(self):
        self.keep(1, 2, 5, 9, 8)
        log = self.logs.of(ANA.peer_id, RUN)
        self.assertEqual((log.head, log.highest), (2, 9))
        self.assertEqual(log.missing(12), [(3, 4), (6, 7), (10, 12)])
        self.assertEqual(log.missing(), [(3, 4), (6, 7)])
        self.assertEqual(log.runs(), [(5, 5), (8, 9)])
        expected = keys.heads_digest([(ANA.peer_id, RUN, 2, [(5, 5), (8, 9)])])
        self.assertEqual(self.logs.digest(), expected)
        self.keep(3, 4, 6, 7)
        self.assertEqual((log.head, log.runs(), log.missing(9)), (9, [], []))

    def test_floors_raise_the_head_and_last(self):
        self.keep(4)
        self.logs.take_floor(ANA.peer_id, RUN, 3)
        self.assertEqual(self.logs.of(ANA.peer_id, RUN).head, 4)
        self.assertTrue(self.logs.has(ANA.peer_id, RUN, 2))
        again = logs.Logs(self.store, KITCHEN.channel_id)
        self.assertEqual((again.of(ANA.peer_id, RUN).head, again.digest()), (4, self.logs.digest()))
        self.assertEqual(again.heads({0}, None), [(ANA.peer_id, RUN, 4, 3)])

    def test_kept_once_and_in_order(self):
        self.keep(2, 1)
        found = [value["number"] for value in logs.Logs(self.store, KITCHEN.channel_id).in_order()]
        self.assertEqual(found, [1, 2])
        self.assertTrue(self.store.keep_received(ANA.peer_id, "m", b"{}"))
        self.assertFalse(self.store.keep_received(ANA.peer_id, "m", b"{}"))

    def test_commits_are_one(self):
        with self.assertRaises(ZeroDivisionError), self.store.one_commit():
            self.keep(1)
            raise ZeroDivisionError
        self.assertEqual(self.store.entries(KITCHEN.channel_id), [])


class RunTests(unittest.TestCase):
    def test_every_run_of_every_size_leads_to_the_root(self):
        draw = make_vectors.Draw("runs")
        for count in (2, 3, 5, 8, 13, 700):
            hashes = [draw.bytes(32) for _ in range(count)]
            root = media.root(hashes)
            size = min(512, media.power_of_two(count))
            while size >= 1:
                for first in range(0, count, size):
                    answer = hashes[first : first + size] + files.uncles(hashes, first, size)
                    self.assertEqual(
                        files.is_run_of(root, count, first, size, answer), hashes[first : first + size])
                    turned = [bytes([answer[0][0] ^ 1]) + answer[0][1:]] + answer[1:]
                    self.assertIsNone(files.is_run_of(root, count, first, size, turned))
                    self.assertIsNone(files.is_run_of(root, count, first, size, answer[:-1]))
                    self.assertIsNone(files.is_run_of(root, count, first, size, answer + [answer[0]]))
                size //= 2 if count < 100 else 64

    def test_a_folder_is_hashed_as_its_manifest_says(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for path, size in (("b", 0), ("a/z", 3), ("a/y", 2 * media.PIECE_BYTES + 1)):
                (folder / path).parent.mkdir(exist_ok=True)
                (folder / path).write_bytes(make_vectors.Draw(path).bytes(size))
            content = files.shared(folder, "")
            self.assertEqual([file["path"] for file in content.files], [["a", "y"], ["a", "z"], ["b"]])
            self.assertEqual((content.count, content.place(2), content.place(3)), (4, (0, 2), (1, 0)))
            self.assertTrue(content.verifies(1, 0, (folder / "a/z").read_bytes()))
            self.assertFalse(content.verifies(1, 0, b"xyz"))


class NameTests(unittest.TestCase):
    def test_received_paths_stay_where_they_belong(self):
        for name in ("a\nb", "\u202Etxt", "x\\y", "\x7f"):
            safe = files.safe_name(name)
            self.assertFalse(set(safe) & set("/\\\n\u202e\x7f"), safe)
            self.assertNotIn(safe, ("", ".", ".."))

    def test_what_becomes_the_same_is_numbered(self):
        value = {"mime": "inode/directory", "files": [
            {"path": [name], "size": 0, "root": media.ZERO.hex(), "executable": False}
            for name in ("A", "a", "a\x01", "a\x02")]}
        content = files.Content(make_vectors.again.manifest(value))
        found = ["/".join(parts) for parts in content.safe_paths()]
        self.assertEqual(len({name.casefold() for name in found}), 4, found)


class JSONTests(unittest.TestCase):
    def test_values_of_every_kind_are_written_without_spaces(self):
        text = writing.json_text({"a": [None, True, -1, 2.5, "я\n\x7f"], "b": [{}]})
        self.assertEqual(text, '{"a":[null,true,-1,2.5,"я\\n\\u007f"],"b":[{}]}')


class EntryTests(unittest.TestCase):
    def test_what_is_written_is_genuine_and_nothing_else(self):
        data = entry(1)
        self.assertTrue(objects.is_genuine_entry(data, KITCHEN.channel_id))
        for at in range(0, len(data) - 150, 11):
            turned = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            try:
                self.assertFalse(objects.is_genuine_entry(turned, KITCHEN.channel_id), f"byte {at}")
            except make_vectors.Refused:
                continue


if __name__ == "__main__":
    unittest.main()
