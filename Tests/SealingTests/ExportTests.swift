import Glibc
import ParleyVocabulary
import Testing

@testable import ParleySealing

@Suite struct ExportTests {
  private let directory = TemporaryDirectory()
  private var old: String { directory.path + "/old" }
  private var new: String { directory.path + "/new" }
  private static let cheap = PassphraseCost(passCount: 1, memory: 8)
  private let passphrase = Array("moving day".utf8)

  private func exported(homePassphrase: [UInt8]? = nil) throws -> (peer: PeerID, channel: ChannelID, file: [UInt8]) {
    let profile = try Profile.open(home: old)
    let garden = ChannelKeys.founded(name: try ChannelName("garden"), by: profile.identity.peerID)
    try profile.saveChannel(garden)
    try profile.saveDisplayName(try DisplayName("Ána"))
    for _ in 0..<7 { _ = try profile.nextIncarnation() }
    if let homePassphrase { try profile.setPassphrase(homePassphrase, cost: Self.cheap) }
    #expect(try profile.isExported == false)
    let file = try profile.export(passphrase, cost: Self.cheap)
    #expect(try profile.isExported)
    #expect(try profile.isRetired == false)
    return (profile.identity.peerID, garden.id, file)
  }

  @Test(arguments: [nil, Array("home".utf8)] as [[UInt8]?])
  func aPersonMovesWithNameAndChannels(_ homePassphrase: [UInt8]?) throws {
    let (peer, channel, file) = try exported(homePassphrase: homePassphrase)
    #expect(try Profile.importing(file, from: "f", passphrase, home: new) == peer)
    let profile = try Profile.open(home: new)
    #expect(profile.identity.peerID == peer)
    #expect(try profile.loadChannels().map(\.id) == [channel])
    #expect(try profile.loadDisplayName()?.text == "Ána")
    #expect(try profile.nextIncarnation() == 7 + Profile.incarnationLead + 1, "ahead of what the old home comes to")
    #expect(try profile.isExported == false)
    #expect(directory.mode("new") == 0o700 && directory.mode("new/identity") == 0o600)
  }

  @Test func whoIsThereIsNeverReplaced() throws {
    let (_, _, file) = try exported()
    let other = try Profile.open(home: new).identity.peerID
    let refusal = ProfileError.hasIdentity(path: new)
    #expect(throws: refusal) { try Profile.importing(file, from: "f", passphrase, home: new) }
    #expect(try Profile.open(home: new).identity.peerID == other)
    try Profile.open(home: new).setPassphrase(passphrase, cost: Self.cheap)
    #expect(throws: refusal) { try Profile.importing(file, from: "f", passphrase, home: new) }
    do {
      let running = try Profile.open(home: old)
      #expect(throws: ProfileError.inUse(path: old, processID: getpid())) {
        try Profile.importing(file, from: "f", passphrase, home: running.path)
      }
    }
  }

  @Test func aWrongPassphraseAndADamagedFileMakeNothing() throws {
    let (_, _, file) = try exported()
    #expect(throws: ProfileError.wrongPassphrase(path: "f")) {
      try Profile.importing(file, from: "f", Array("other".utf8), home: new)
    }
    for place in [0, 8, 9, 20, 40, file.count - 1] {
      #expect(throws: ProfileError.self, "\(place)") {
        try Profile.importing(file.flipping(bit: place * 8), from: "f", passphrase, home: new)
      }
    }
    for count in [0, 1, 90, file.count - 1] {
      #expect(throws: ProfileError.self) {
        try Profile.importing(Array(file.prefix(count)), from: "f", passphrase, home: new)
      }
    }
    #expect(access(new, F_OK) != 0)
  }

  /// Cut short before the identity is there, an import is done again.
  @Test func whatWasCutShortIsImportedAgain() throws {
    let (peer, channel, file) = try exported()
    _ = try Profile.importing(file, from: "f", passphrase, home: new)
    unlink(new + "/identity")
    #expect(try Profile.importing(file, from: "f", passphrase, home: new) == peer)
    #expect(try Profile.open(home: new).loadChannels().map(\.id) == [channel])
  }

  @Test func onlyAHomeThatWasExportedIsRetired() throws {
    let fresh = try Profile.open(home: new)
    try fresh.retireIfExported()
    #expect(try fresh.isRetired == false)
    _ = try exported()
    let profile = try Profile.open(home: old)
    try profile.retireIfExported()
    #expect(try profile.isRetired)
  }

  private static let name = "channels/" + String(repeating: "a", count: 26)

  @Test func aBundleIsReadAsItWasWritten() throws {
    let bundle = IdentityBundle(
      incarnation: 5, files: [.init(name: "identity", bytes: [1]), .init(name: Self.name, bytes: [2, 3])])
    #expect(IdentityBundle(decoding: bundle.encoded) == bundle)
    for count in 0..<bundle.encoded.count {
      #expect(IdentityBundle(decoding: Array(bundle.encoded.prefix(count))) == nil)
    }
    #expect(IdentityBundle(decoding: bundle.encoded + [0]) == nil)
  }

  /// Names that would be written elsewhere, or over something else.
  @Test(arguments: [
    "", ".", "..", "../identity", "/etc/passwd", "lock", "incarnation", "passphrase", "exported", "store.sqlite",
    "channels/", "channels/..", "channels/../identity", "channels/aaaaaaaaaaaaaaaaaaaaaaaaa/", "identity",
    "channels/" + String(repeating: "A", count: 26), "Channels/" + String(repeating: "a", count: 26),
    "channels/" + String(repeating: "a", count: 25) + "1",
  ])
  func namesInABundleAreChecked(_ name: String) {
    let bundle = IdentityBundle(
      incarnation: 5, files: [.init(name: "identity", bytes: [1]), .init(name: name, bytes: [2])])
    #expect(IdentityBundle(decoding: bundle.encoded) == nil)
  }

  @Test func numbersInABundleAreBounded() {
    let file = IdentityBundle.File(name: "identity", bytes: [1])
    #expect(IdentityBundle(decoding: IdentityBundle(incarnation: .max, files: [file]).encoded) == nil)
    #expect(IdentityBundle(decoding: IdentityBundle(incarnation: 1, files: []).encoded) == nil)
    let long = IdentityBundle.File(
      name: "display-name", bytes: [UInt8](repeating: 65, count: PrivateDirectory.fileByteCountMax + 1))
    #expect(IdentityBundle(decoding: IdentityBundle(incarnation: 1, files: [file, long]).encoded) == nil)
    let none = IdentityBundle.File(name: "display-name", bytes: [])
    #expect(IdentityBundle(decoding: IdentityBundle(incarnation: 1, files: [file, none]).encoded) == nil)
  }
}
