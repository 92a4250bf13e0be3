import Glibc
import Parley
import Testing

/// A real node on the loopback interface, in a home of its own that goes with it.
final class RunningNode: Sendable {
  let node: Node
  let home: TemporaryHome
  private let run: Task<Void, any Error>

  init(
    _ name: String, home: TemporaryHome = TemporaryHome(), with change: (inout NodeSettings) -> Void = { _ in }
  ) async throws {
    self.home = home
    var settings = NodeSettings(home: home.path + "/home", displayName: name, interfaces: ["lo"])
    change(&settings)
    let node = try Node(settings)
    self.node = node
    run = Task { try await node.run() }
    try await node.ready()
  }

  /// Returns once `run()` has by itself.
  func ended() async throws { try await run.value }

  /// Returns once `run()` has.
  func stop() async throws {
    await node.stop()
    try await run.value
  }
}

/// A folder that is removed with the last reference to it.
final class TemporaryHome: Sendable {
  let path: String

  init() {
    var template = Array("/tmp/parley-test-XXXXXX".utf8CString)
    path = template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
  }

  deinit { TemporaryHome.remove(path) }

  private static func remove(_ path: String) {
    if let folder = opendir(path) {
      while let entry = readdir(folder) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        if name != ".", name != ".." { remove(path + "/" + name) }
      }
      closedir(folder)
    }
    Glibc.remove(path)
  }

  func write(_ bytes: [UInt8], _ name: String) throws -> String {
    let file = path + "/" + name
    let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL, 0o600)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    #expect(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
    return file
  }

  static func read(_ path: String) throws -> [UInt8] {
    let descriptor = Glibc.open(path, O_RDONLY)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = Glibc.read(descriptor, &part, part.count)
      guard count > 0 else { return bytes }
      bytes += part[..<count]
    }
  }
}

extension Node {
  /// Waits until `isSo`, which is asked now and after every event. The test's time limit bounds the wait.
  func wait(until isSo: @Sendable (Node) async throws -> Bool) async throws {
    let events = await events(bufferingCount: 4_096)
    if try await isSo(self) { return }
    for await _ in events where try await isSo(self) { return }
    Issue.record("the node ended before what was waited for")
  }

  /// Waits until these people, besides this node, are online in the channel.
  func wait(for peers: PeerID..., in channel: ChannelName) async throws {
    try await wait { node in
      let online = try await node.members(of: channel).filter { $0.status == .online }.map(\.peer)
      return Set(peers).isSubset(of: online)
    }
  }

  /// Waits until the last message heard here announces this media.
  func wait(forMedia id: MediaID, in channel: ChannelName) async throws {
    try await wait { try await $0.history(of: channel, limit: 1).first?.media?.id == id }
  }

  /// Waits until the channel's history here ends with this text.
  func wait(forText text: String, in channel: ChannelName) async throws {
    try await wait { try await $0.history(of: channel, limit: 10).contains { $0.body == .text(text) } }
  }
}

func name(_ text: String) throws -> ChannelName { try ChannelName(text) }

/// Ana and Ben in an open channel, who see each other. `change`: Ben's settings.
func pair(
  _ title: String, ben change: (inout NodeSettings) -> Void = { _ in }
) async throws -> (channel: ChannelName, ana: RunningNode, ben: RunningNode) {
  let channel = try name(title)
  let ana = try await RunningNode("Ana")
  let ben = try await RunningNode("Ben", with: change)
  for node in [ana.node, ben.node] { try await node.join(channel, secret: .open) }
  try await ana.node.wait(for: ben.node.peerID, in: channel)
  try await ben.node.wait(for: ana.node.peerID, in: channel)
  return (channel, ana, ben)
}

/// Bytes that differ from block to block.
func pattern(_ byteCount: Int) -> [UInt8] { (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 7) } }
