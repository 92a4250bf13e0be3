import Parley

/// The one place where the real node is made.
enum NodeFactory {
  struct Made {
    let node: any NodeServing
    let run: @Sendable () async throws -> Void
  }

  static func make(_ settings: NodeSettings) async throws -> Made {
    throw ParleyError.stopped
  }
}
