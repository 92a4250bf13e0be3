import Testing

@testable import ParleySealing

@Suite struct SecretBytesTests {
  @Test(arguments: [1, 16, 31, 128, 129, 512, 513, 4_096])
  func memoryIsZeroAndAlignedAlsoWhenUsedBefore(_ byteCount: Int) {
    for _ in 0..<3 {
      let memory = SecretMemory(byteCount: byteCount)
      #expect(memory.bytes.count == byteCount)
      #expect(Int(bitPattern: memory.bytes.baseAddress) % 16 == 0)
      #expect(memory.bytes.allSatisfy { $0 == 0 })
      for index in memory.bytes.indices { memory.bytes[index] = 0xFF }
    }
  }

  /// More secrets than a region has slots, from several threads, none over another.
  @Test func secretsDoNotTouchEachOther() async {
    let areWhole = await withTaskGroup(of: Bool.self) { group in
      for task in UInt8(0)..<8 {
        group.addTask {
          let secrets = (0..<300).map { SecretBytes([UInt8](repeating: task, count: $0.isMultiple(of: 2) ? 32 : 512)) }
          return secrets.allSatisfy { $0.withBytes { $0.allSatisfy { $0 == task } } }
        }
      }
      return await group.reduce(true) { $0 && $1 }
    }
    #expect(areWhole)
  }

  /// Two threads that seal with one cipher never use a nonce twice: every frame opens once, in some order.
  @Test func concurrentSealingUsesEachNonceOnce() async throws {
    let key = [UInt8](repeating: 6, count: 32)
    let cipher = key.withUnsafeBytes { NoiseCipher(suite: .chaChaPoly, key: $0) }
    let sealed = await withTaskGroup(of: [[UInt8]].self) { group in
      for _ in 0..<4 { group.addTask { (0..<50).compactMap { _ in try? cipher.seal([1, 2, 3]) } } }
      return await group.reduce(into: []) { $0 += $1 }
    }
    #expect(sealed.count == 200)
    #expect(Set(sealed).count == 200)
    for nonce in UInt64(0)..<200 {
      let opener = key.withUnsafeBytes { NoiseCipher(suite: .chaChaPoly, key: $0, counter: nonce) }
      #expect(sealed.contains { (try? opener.open($0)) == [1, 2, 3] })
    }
  }
}
