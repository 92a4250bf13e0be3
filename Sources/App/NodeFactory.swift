import Parley

/// The one place where the real node is made.
enum NodeFactory {
  struct Made {
    let node: any NodeServing
    let run: @Sendable () async throws -> Void
    /// Returns once the node has logged in and is in the channels of last time.
    let ready: @Sendable () async throws -> Void
  }

  static func make(_ settings: NodeSettings, trouble: @escaping @Sendable (String) -> Void) throws -> Made {
    let node = try Node(settings, trouble: trouble)
    return Made(node: node, run: { try await node.run() }, ready: { try await node.ready() })
  }
}
