// Entries: raw bytes, and ones that are well-formed but for a byte (their hashes can hardly be guessed).
import ParleyVocabulary
import ParleyWire

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  var input = Input(data, count)
  if input.bool() {
    let bytes = input.rest
    if let entry = try? Entry(decoding: bytes[...]) {
      precondition(entry.encoded == bytes, "one entry has one encoding")
    }
    return 0
  }
  let entry = made(&input)
  var bytes = entry.encoded
  if bytes.count <= Limit.entryByteCountMax {
    precondition((try? Entry(decoding: bytes[...])) == entry, "an entry is read as it was written")
  }
  let place = Int(input.uint16()) % bytes.count
  let change = input.byte()
  bytes[place] ^= change
  if let changed = try? Entry(decoding: bytes[...]) {
    precondition(changed.encoded == bytes, "one entry has one encoding")
    precondition(change == 0 || changed != entry, "every byte counts")
  }
  return 0
}

private func made(_ input: inout Input) -> Entry {
  let key = LogKey(author: PeerID(Bytes32(input.take(32))!), log: Instance(input.uint64()))
  let number = max(1, input.counter())
  let lamport = input.counter()
  let timestamp = input.counter()
  let isHidden = input.bool()
  let items = (0...input.choice(9)).map { _ in
    // An empty body stands for one that is gone, and no message is empty.
    Entry.Item(kind: input.counter(), body: [UInt8(ascii: "{")] + input.block(4_000))
  }
  return Entry(
    key: key, number: number, lamport: lamport, timestamp: timestamp, isHidden: isHidden, items: items,
    signature: input.take(64))
}
