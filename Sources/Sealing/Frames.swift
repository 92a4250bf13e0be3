import ParleyVocabulary

/// Why a session's frame was refused. Every one of them ends the session.
package enum FrameError: Error, Equatable, Sendable, CustomStringConvertible {
  /// A sealed payload longer than allowed; nothing was allocated for it.
  case tooLong(byteCount: Int, byteCountMax: Int)
  /// Shorter than its tag.
  case tooShort(byteCount: Int, byteCountMin: Int)
  case notAuthentic
  case noncesExhausted

  package var description: String {
    switch self {
    case .tooLong(let byteCount, let byteCountMax):
      "a frame of \(byteCount) sealed bytes; at most \(byteCountMax) are allowed"
    case .tooShort(let byteCount, let byteCountMin):
      "a frame of \(byteCount) sealed bytes; its tag alone is \(byteCountMin)"
    case .notAuthentic: "a frame was altered, repeated, or lost before this one"
    case .noncesExhausted: "the session has sealed as much as its key may"
    }
  }

  init(_ error: NoiseError) {
    switch error {
    case .noncesExhausted: self = .noncesExhausted
    case .tooShort(let byteCount, let byteCountMin): self = .tooShort(byteCount: byteCount, byteCountMin: byteCountMin)
    case .tooLong(let byteCount, let byteCountMax): self = .tooLong(byteCount: byteCount, byteCountMax: byteCountMax)
    case .notAuthentic, .lowOrderPoint, .cipherUnavailable, .handshakeFailed: self = .notAuthentic
    }
  }
}

/// Seals what goes out on a session. A frame is the length of the sealed payload in 2 bytes, big-endian, then the
/// sealed payload: 16 to 32,000 bytes, its tag of 16 included. Frames must leave in the order in which they were
/// sealed.
package struct FrameSealer: Sendable {
  package static let lengthByteCount = 2
  package static let payloadByteCountMax = Limit.sealedPayloadByteCountMax - NoiseCipher.tagByteCount
  /// What a frame has beside its payload.
  package static let overheadByteCount = lengthByteCount + NoiseCipher.tagByteCount

  private let cipher: NoiseCipher

  init(_ cipher: NoiseCipher) { self.cipher = cipher }

  package func seal(_ payload: [UInt8]) throws(FrameError) -> [UInt8] {
    var bytes: [UInt8] = []
    try seal(payload, appendingTo: &bytes)
    return bytes
  }

  /// Appends the frame; on an error `bytes` is as it was.
  package func seal(_ payload: [UInt8], appendingTo bytes: inout [UInt8]) throws(FrameError) {
    let start = bytes.count
    let place = try reserve(payload.count, in: &bytes)
    bytes.append(contentsOf: payload)
    bytes.append(contentsOf: repeatElement(0, count: NoiseCipher.tagByteCount))
    try encrypt(place, in: &bytes, orShortenTo: start)
  }

  /// The same for a payload that lies in memory, such as a block of a file.
  package func seal(_ payload: UnsafeRawBufferPointer, appendingTo bytes: inout [UInt8]) throws(FrameError) {
    let start = bytes.count
    let place = try reserve(payload.count, in: &bytes)
    bytes.append(contentsOf: payload)
    bytes.append(contentsOf: repeatElement(0, count: NoiseCipher.tagByteCount))
    try encrypt(place, in: &bytes, orShortenTo: start)
  }

  /// The same for a payload that `write` appends, so that it is put together where it is sealed.
  package func seal(appendingTo bytes: inout [UInt8], _ write: (inout [UInt8]) -> Void) throws(FrameError) {
    let start = bytes.count
    let length = try reserve(0, in: &bytes)
    write(&bytes)
    let sealedByteCount = bytes.count - length.lowerBound + NoiseCipher.tagByteCount
    guard sealedByteCount <= Limit.sealedPayloadByteCountMax else {
      bytes.removeLast(bytes.count - start)
      throw .tooLong(byteCount: sealedByteCount, byteCountMax: Limit.sealedPayloadByteCountMax)
    }
    bytes[start] = UInt8(sealedByteCount >> 8)
    bytes[start + 1] = UInt8(sealedByteCount & 0xFF)
    bytes.append(contentsOf: repeatElement(0, count: NoiseCipher.tagByteCount))
    try encrypt(length.lowerBound..<bytes.count, in: &bytes, orShortenTo: start)
  }

  /// Appends the length; the sealed payload's place comes after it.
  private func reserve(_ payloadByteCount: Int, in bytes: inout [UInt8]) throws(FrameError) -> Range<Int> {
    let sealedByteCount = payloadByteCount + NoiseCipher.tagByteCount
    guard sealedByteCount <= Limit.sealedPayloadByteCountMax else {
      throw .tooLong(byteCount: sealedByteCount, byteCountMax: Limit.sealedPayloadByteCountMax)
    }
    bytes.append(UInt8(sealedByteCount >> 8))
    bytes.append(UInt8(sealedByteCount & 0xFF))
    return bytes.count..<bytes.count + sealedByteCount
  }

  private func encrypt(
    _ place: Range<Int>, in bytes: inout [UInt8], orShortenTo start: Int
  ) throws(FrameError) {
    var failure: NoiseError?
    bytes.withUnsafeMutableBytes { bytes in
      let target = UnsafeMutableRawBufferPointer(rebasing: bytes[place])
      let plaintext = UnsafeRawBufferPointer(rebasing: target[..<(target.count - NoiseCipher.tagByteCount)])
      do throws(NoiseError) { try cipher.seal(plaintext, into: target) } catch { failure = error }
    }
    guard let failure else { return }
    bytes.removeLast(bytes.count - start)
    throw FrameError(failure)
  }
}

/// Opens what comes in on a session: append what was received, then take payloads until there is none.
package struct FrameOpener: Sendable {
  private let cipher: NoiseCipher
  private let sealedByteCountMax: Int
  private var buffer: [UInt8] = []
  private var start = 0
  private var failure: FrameError?

  init(_ cipher: NoiseCipher, sealedByteCountMax: Int = Limit.sealedPayloadByteCountMax) {
    self.cipher = cipher
    self.sealedByteCountMax = sealedByteCountMax
  }

  /// The same direction with what was received and not yet taken, under another limit.
  init(continuing other: FrameOpener, sealedByteCountMax: Int = Limit.sealedPayloadByteCountMax) {
    self.init(other.cipher, sealedByteCountMax: sealedByteCountMax)
    buffer = other.buffer
    start = other.start
  }

  /// Bytes received and not yet taken. After `next()` returned nil, less than one frame.
  package var waitingByteCount: Int { buffer.count - start }

  package mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }

  package mutating func append(_ bytes: UnsafeRawBufferPointer) {
    // What was taken is cut off before the array would grow: each byte moves at most once or so.
    if start == buffer.count {
      buffer.removeAll(keepingCapacity: true)
      start = 0
    } else if start > buffer.count / 2 {
      buffer.removeFirst(start)
      start = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// The next payload, or nil when no whole frame is there. After an error it throws the same again.
  package mutating func next() throws(FrameError) -> [UInt8]? {
    if let failure { throw failure }
    do throws(FrameError) { return try open() } catch {
      failure = error
      buffer = []
      start = 0
      throw error
    }
  }

  /// Opens every frame that is whole with these bytes behind what was received before. The payloads share one memory.
  /// A frame that is refused comes after those before it, then and ever after.
  package mutating func openAll(
    _ received: UnsafeRawBufferPointer
  ) -> (payloads: [ArraySlice<UInt8>], failure: FrameError?) {
    if let failure { return ([], failure) }
    var ranges: [Range<Int>] = []
    let plain = [UInt8](unsafeUninitializedCapacity: waitingByteCount + received.count) { place, count in
      do throws(FrameError) { try openAll(received, into: UnsafeMutableRawBufferPointer(place), &ranges) } catch {
        failure = error
        buffer = []
        start = 0
      }
      count = ranges.last?.upperBound ?? 0
    }
    return (ranges.map { plain[$0] }, failure)
  }

  package mutating func openAll(_ received: [UInt8]) -> (payloads: [ArraySlice<UInt8>], failure: FrameError?) {
    received.withUnsafeBytes { openAll($0) }
  }

  private mutating func openAll(
    _ received: UnsafeRawBufferPointer, into place: UnsafeMutableRawBufferPointer, _ ranges: inout [Range<Int>]
  ) throws(FrameError) {
    var rest = received[...]
    while waitingByteCount > 0 {
      let opened = buffer.withUnsafeBytes { buffer in
        Result { () throws(FrameError) in
          try openWhole(UnsafeRawBufferPointer(rebasing: buffer[start...]), into: place, &ranges)
        }
      }
      start += try opened.get()
      if waitingByteCount == 0 { break }
      if rest.isEmpty { return }
      // A part of a frame waits: it gets what it lacks, first of all of its length.
      var need = FrameSealer.lengthByteCount - waitingByteCount
      if need <= 0 { need += Int(buffer[start]) << 8 | Int(buffer[start + 1]) }
      buffer.append(contentsOf: rest.prefix(need))
      rest = rest.dropFirst(need)
    }
    buffer.removeAll(keepingCapacity: true)
    start = 0
    let count = try openWhole(UnsafeRawBufferPointer(rebasing: rest), into: place, &ranges)
    buffer.append(contentsOf: rest.dropFirst(count))
  }

  /// Opens frames until the next is not whole, each behind the one before, and says how many bytes they took.
  private func openWhole(
    _ source: UnsafeRawBufferPointer, into place: UnsafeMutableRawBufferPointer, _ ranges: inout [Range<Int>]
  ) throws(FrameError) -> Int {
    var position = 0
    while let sealed = try frame(source, at: position) {
      let from = ranges.last?.upperBound ?? 0
      let target = from..<from + sealed.count - NoiseCipher.tagByteCount
      do throws(NoiseError) {
        try cipher.open(
          UnsafeRawBufferPointer(rebasing: source[sealed]), into: UnsafeMutableRawBufferPointer(rebasing: place[target])
        )
      } catch {
        throw FrameError(error)
      }
      ranges.append(target)
      position = sealed.upperBound
    }
    return position
  }

  /// Where the sealed payload of the frame is that begins there; nil while it is not whole.
  private func frame(_ source: UnsafeRawBufferPointer, at position: Int) throws(FrameError) -> Range<Int>? {
    let from = position + FrameSealer.lengthByteCount
    guard from <= source.count else { return nil }
    let sealedByteCount = Int(source[position]) << 8 | Int(source[position + 1])
    guard sealedByteCount <= sealedByteCountMax else {
      throw .tooLong(byteCount: sealedByteCount, byteCountMax: sealedByteCountMax)
    }
    guard sealedByteCount >= NoiseCipher.tagByteCount else {
      throw .tooShort(byteCount: sealedByteCount, byteCountMin: NoiseCipher.tagByteCount)
    }
    return from + sealedByteCount <= source.count ? from..<from + sealedByteCount : nil
  }

  private mutating func open() throws(FrameError) -> [UInt8]? {
    let found = buffer.withUnsafeBytes { buffer in
      Result { () throws(FrameError) in try frame(buffer, at: start) }
    }
    guard let found = try found.get() else { return nil }
    start = found.upperBound
    var failure: NoiseError?
    let payloadByteCount = found.count - NoiseCipher.tagByteCount
    let payload = [UInt8](unsafeUninitializedCapacity: payloadByteCount) { place, count in
      let target = UnsafeMutableRawBufferPointer(start: place.baseAddress, count: payloadByteCount)
      buffer.withUnsafeBytes { buffer in
        let sealed = UnsafeRawBufferPointer(rebasing: buffer[found])
        do throws(NoiseError) { try cipher.open(sealed, into: target) } catch { failure = error }
      }
      count = failure == nil ? target.count : 0
    }
    if let failure { throw FrameError(failure) }
    return payload
  }
}
