/// A JSON value (RFC 8259) that keeps the order of an object's members.
package indirect enum JSON: Equatable, Sendable {
  case null
  case bool(Bool)
  case integer(Int64)
  case number(Double)
  case string(String)
  case array([JSON])
  case object([Field])

  package struct Field: Equatable, Sendable {
    package let name: String
    package let value: JSON
    package init(_ name: String, _ value: JSON) {
      self.name = name
      self.value = value
    }
  }

  /// The member of an object; nil when this is not an object or has none of that name.
  package subscript(_ name: String) -> JSON? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name == name }?.value
  }

  package var string: String? {
    guard case .string(let text) = self else { return nil }
    return text
  }

  package var bool: Bool? {
    guard case .bool(let value) = self else { return nil }
    return value
  }

  /// A whole number; `2.0` and `2e0` count as whole.
  package var integer: Int64? {
    switch self {
    case .integer(let value): value
    case .number(let value): Int64(exactly: value)
    case .null, .bool, .string, .array, .object: nil
    }
  }

  package var number: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .number(let value): value
    case .null, .bool, .string, .array, .object: nil
    }
  }

  package var array: [JSON]? {
    guard case .array(let values) = self else { return nil }
    return values
  }

  package var members: [Field]? {
    guard case .object(let members) = self else { return nil }
    return members
  }

  /// An object with `name` set to `value`, in place where it stood or else at the end; other values are left alone.
  package func setting(_ name: String, to value: JSON) -> JSON {
    guard case .object(var members) = self else { return self }
    if let index = members.firstIndex(where: { $0.name == name }) {
      members[index] = Field(name, value)
    } else {
      members.append(Field(name, value))
    }
    return .object(members)
  }

  /// An object less the member `name`; other values are left alone.
  package func without(_ name: String) -> JSON {
    guard case .object(let members) = self else { return self }
    return .object(members.filter { $0.name != name })
  }

  /// A count of bytes or things. Above 2⁶³ − 1 it is written as a floating-point number, as JavaScript would.
  package static func count(_ value: UInt64) -> JSON {
    if let exact = Int64(exactly: value) { return .integer(exact) }
    return .number(Double(value))
  }

  package static func count(_ value: Int) -> JSON { .integer(Int64(value)) }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
  package init(stringLiteral value: String) { self = .string(value) }
  package init(booleanLiteral value: Bool) { self = .bool(value) }
  package init(integerLiteral value: Int64) { self = .integer(value) }
  package init(floatLiteral value: Double) { self = .number(value) }
  package init(arrayLiteral elements: JSON...) { self = .array(elements) }
  package init(dictionaryLiteral elements: (String, JSON)...) {
    self = .object(elements.map { Field($0.0, $0.1) })
  }
  package init(nilLiteral: ()) { self = .null }
}
