import Foundation
import ParleyWire
import Testing

/// One file of golden vectors. A test makes the vectors anew and compares; with PARLEY_WRITE_VECTORS=1 in the
/// environment it writes the file instead.
struct VectorFile {
  static let folder = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Peers/Vectors")

  let name: String
  private var vectors: [(name: String, value: JSONValue)] = []

  init(_ name: String) { self.name = name }

  mutating func add(_ vector: String, _ members: [JSONMember]) {
    precondition(!vectors.contains { $0.name == vector }, "the name \(vector) is taken")
    vectors.append((vector, .object([JSONMember("name", .string(vector))] + members)))
  }

  func check() throws {
    let url = Self.folder.appendingPathComponent(name + ".json")
    var text = "[\n"
    for (index, vector) in vectors.enumerated() {
      text += Self.pretty(vector.value, indent: "  ") + (index + 1 < vectors.count ? ",\n" : "\n")
    }
    text += "]\n"
    if ProcessInfo.processInfo.environment["PARLEY_WRITE_VECTORS"] == "1" {
      try Data(text.utf8).write(to: url)
      return
    }
    let written = try String(decoding: Data(contentsOf: url), as: UTF8.self)
    guard written != text else { return }
    guard case .array(let golden) = try JSONValue(decoding: written.utf8) else {
      Issue.record("\(name).json is no array")
      return
    }
    let known = Dictionary(golden.compactMap { value in Self.name(of: value).map { ($0, value) } }) { a, _ in a }
    for vector in vectors where known[vector.name] != vector.value {
      Issue.record("\(name).json: \(vector.name) has other bytes now")
    }
    #expect(golden.count == vectors.count, "\(name).json holds as many vectors as are made")
    #expect(written == text, "\(name).json is written as this test writes it")
  }

  private static func name(of value: JSONValue) -> String? {
    guard case .object(let members) = value else { return nil }
    return try? members.string("name")
  }

  private static func pretty(_ value: JSONValue, indent: String) -> String {
    switch value {
    case .object(let members) where !members.isEmpty:
      let lines = members.map {
        indent + "  " + String(decoding: JSONValue.string($0.name).encoded, as: UTF8.self) + ": "
          + pretty($0.value, indent: indent + "  ").drop { $0 == " " }
      }
      return indent + "{\n" + lines.joined(separator: ",\n") + "\n" + indent + "}"
    case .array(let values) where values.contains { if case .object = $0 { true } else { false } }:
      return indent + "[\n" + values.map { pretty($0, indent: indent + "  ") }.joined(separator: ",\n") + "\n" + indent
        + "]"
    default: return indent + String(decoding: value.encoded, as: UTF8.self)
    }
  }
}

extension JSONMember {
  init(_ name: String, _ text: String) { self.init(name, .string(text)) }
  init(_ name: String, hex bytes: some Collection<UInt8>) { self.init(name, .string(bytes.hex)) }
  /// Unsigned numbers of 64 bits do not fit every reader's numbers: as 16 hexadecimal digits.
  init(_ name: String, bits value: UInt64) {
    self.init(name, .string((0..<8).map { UInt8(truncatingIfNeeded: value >> UInt64(56 - 8 * $0)) }.hex))
  }
  init(_ name: String, _ number: UInt64) { self.init(name, .integer(Int64(number))) }
  init(_ name: String, _ number: Int) { self.init(name, .integer(Int64(number))) }
  init(_ name: String, _ flag: Bool) { self.init(name, .bool(flag)) }
}

extension Collection<UInt8> {
  var hex: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}
