import Glibc
import ParleyVocabulary
import Testing

@testable import ParleySealing

@Suite struct PasetoTests {
  @Test(arguments: PasetoVector.all.filter { $0.payload != nil })
  func signingVectorsAreReproduced(_ vector: PasetoVector) throws {
    let publicKey = try #require(vector.publicKey)
    let key = try #require(OrganiserKey(bytes: bytes(publicKey)))
    let seed = try #require(vector.seed)
    let signer = TokenSigner(seed: bytes(seed))
    #expect(signer.publicKey == key)
    let payload = try #require(vector.payload)
    let made = Paseto(
      signing: Array(payload.utf8), footer: Array(vector.footer.utf8), assertion: Array(vector.assertion.utf8),
      with: signer)
    #expect(made.text == vector.token)
    let read = try Paseto(vector.token)
    #expect(read == made)
    #expect(read.isSigned(by: key, assertion: Array(vector.assertion.utf8)))
    #expect(read.isSigned(by: key, assertion: Array((vector.assertion + "!").utf8)) == false)
  }

  @Test(arguments: PasetoVector.all.filter { $0.payload == nil })
  func failingVectorsAreRefused(_ vector: PasetoVector) throws {
    // 4-F-2 has the form of a public token, but only a symmetric key: no key of this family makes it valid.
    let keys = PasetoVector.all.compactMap(\.publicKey).compactMap { OrganiserKey(bytes: bytes($0)) }
    #expect(keys.count == 4)
    let paseto = try? Paseto(vector.token)
    #expect((paseto == nil) == (vector.name != "4-F-2"))
    for key in keys { #expect(paseto?.isSigned(by: key, assertion: Array(vector.assertion.utf8)) != true) }
  }

  @Test func everyChangedBitIsNoticed() throws {
    let signer = TokenSigner(seed: [UInt8](repeating: 7, count: 32))
    let token = Paseto(signing: Array("{\"a\":1}".utf8), footer: Array("key".utf8), with: signer).text
    var bytes = Array(token.utf8)
    for index in bytes.indices {
      for bit in 0..<8 {
        bytes[index] ^= 1 << bit
        let changed = String(validating: bytes, as: UTF8.self).flatMap { try? Paseto($0) }
        #expect(changed?.isSigned(by: signer.publicKey) != true, "byte \(index), bit \(bit)")
        bytes[index] ^= 1 << bit
      }
    }
  }

  @Test func formsThatAreNoTokensAreRefused() {
    for text in ["", "v4.public.", "v4.public.AAAA", "v4.public.AAAA.AAAA.AAAA", "v3.public.AAAA", "V4.public.AAAA"] {
      #expect(throws: TokenFormError.self, "\(text)") { try Paseto(text) }
    }
    let token = Paseto(signing: [1], with: TokenSigner(seed: [UInt8](repeating: 1, count: 32))).text
    #expect(throws: TokenFormError.self) { try Paseto(token + ".") }
    #expect(throws: TokenFormError.self) { try Paseto(token + "=") }
    #expect(throws: TokenFormError.self) { try Paseto(token + " ") }
    let long = String(repeating: "A", count: Limit.tokenByteCountMax)
    #expect(throws: TokenFormError.tooLong(byteCount: 4_106, byteCountMax: 4_096)) { try Paseto("v4.public." + long) }
  }

  /// Vectors of the specification's Common.md.
  @Test func preAuthenticationEncoding() {
    let zeros = [UInt8](repeating: 0, count: 7)
    #expect(Paseto.preAuthenticationEncoding([]) == [0] + zeros)
    #expect(Paseto.preAuthenticationEncoding([[]]) == [1] + zeros + [0] + zeros)
    #expect(Paseto.preAuthenticationEncoding([Array("test".utf8)]) == [1] + zeros + [4] + zeros + Array("test".utf8))
  }
}

@Suite struct TokenSignerTests {
  /// Vectors k4.pid-1, k4.pid-2 and k4.secret-1 of paseto-standard/test-vectors.
  @Test func keysAreWrittenAsOthersDo() throws {
    let zeros = try #require(OrganiserKey(bytes: [UInt8](repeating: 0, count: 32)))
    #expect(zeros.paserkID == "k4.pid.S_XQmeEwHbbvRmiyfXfHYpLGjXGzjTRSDoT1YtTakWFE")
    let counted = try #require(OrganiserKey(bytes: Array(0x70...0x8F)))
    #expect(counted.paserkID == "k4.pid.9ShR3xc8-qVJ_di0tc9nx0IDIqbatdeM2mqLFBJsKRHs")
    let secret =
      "k4.secret.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA7aie8zrakLWKjqNAqbw1zZTIVdx3iQ6Y6wEihi1naKQ"
    let folder = TemporaryDirectory()
    let path = try folder.write(secret + "\n", mode: 0o600)
    #expect(
      try TokenSigner.open(path: path).publicKey.bytes
        == bytes("3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"))
  }

  @Test func aKeyIsKeptPrivatelyAndReadAgain() throws {
    let folder = TemporaryDirectory()
    let made = try TokenSigner.create(path: folder.path + "/new")
    #expect(try TokenSigner.open(path: folder.path + "/new").publicKey == made.publicKey)
    var status = stat()
    #expect(stat(folder.path + "/new", &status) == 0)
    #expect(status.st_mode & 0o777 == 0o600)
    // What is there is never replaced.
    #expect(throws: ProfileError.self) { try TokenSigner.create(path: folder.path + "/new") }
    #expect(try TokenSigner.open(path: folder.path + "/new").publicKey == made.publicKey)
  }

  @Test func filesThatAreOpenToOthersOrNoKeysAreRefused() throws {
    let folder = TemporaryDirectory()
    let path = folder.path + "/new"
    _ = try TokenSigner.create(path: path)
    #expect(chmod(path, 0o640) == 0)
    #expect(throws: ProfileError.notPrivate(path: path, mode: 0o640)) { try TokenSigner.open(path: path) }
    let good = "k4.secret.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA7aie8zrakLWKjqNAqbw1zZTIVdx3iQ6Y6wEihi1naKQ"
    let foreignHalf = "k4.secret." + String(repeating: "A", count: 86)
    for text in ["", "\n", "k4.secret.", good + "\n\n", good + " ", "x" + good.dropFirst(), foreignHalf] {
      let file = try folder.write(text, mode: 0o600)
      #expect(throws: ProfileError.self, "\(text)") { try TokenSigner.open(path: file) }
    }
    #expect(throws: ProfileError.self) { try TokenSigner.open(path: folder.path) }
    #expect(throws: ProfileError.self) { try TokenSigner.open(path: folder.path + "/none") }
  }
}

extension TemporaryDirectory {
  fileprivate func write(_ text: String, mode: mode_t) throws -> String {
    let file = "\(path)/\(Sealing.randomMessageID())"
    let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL, mode)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    try #require(Glibc.write(descriptor, text, text.utf8.count) == text.utf8.count)
    return file
  }
}
