import Synchronization

/// What waits for an actor, in the order it was posted. Posting never blocks and is never refused: who may post is
/// bounded at the edges (links stop reading, the API refuses). One task reads.
package final class Mailbox<Mail: Sendable>: Sendable {
  private struct State {
    var mail: [Mail] = []
    /// Taken by the reader, which has not come back for more.
    var inHandCount = 0
    var isClosed = false
    var reader: CheckedContinuation<[Mail], Never>?
  }

  private let state = Mutex(State())

  package init() {}

  /// What waits, and what is being handled.
  package var count: Int { state.withLock { $0.mail.count + $0.inHandCount } }

  /// Whether nothing waits; what is being handled does not count.
  package var isEmpty: Bool { state.withLock { $0.mail.isEmpty } }

  /// Whether nothing waits, but more may come.
  package var isIdle: Bool { state.withLock { $0.mail.isEmpty && !$0.isClosed } }

  /// The reader is done with what it took, and does something else before it comes back for more.
  package func handled() { state.withLock { $0.inHandCount = 0 } }

  package func post(_ mail: Mail) { post(contentsOf: CollectionOfOne(mail)) }

  package func post(contentsOf mail: some Collection<Mail>) {
    guard !mail.isEmpty else { return }
    let wake = state.withLock { state -> (CheckedContinuation<[Mail], Never>, [Mail])? in
      guard !state.isClosed else { return nil }
      state.mail.append(contentsOf: mail)
      guard let reader = state.reader else { return nil }
      state.reader = nil
      return (reader, Self.handOut(&state))
    }
    if let (reader, mail) = wake { reader.resume(returning: mail) }
  }

  private static func handOut(_ state: inout State) -> [Mail] {
    defer { state.mail = [] }
    state.inHandCount = state.mail.count
    return state.mail
  }

  /// Everything that waits, as soon as there is any; empty once the mailbox is closed and read out. Stays on the
  /// caller's actor. The caller's task should prefer the actor's executor: where that is, it is woken.
  package nonisolated(nonsending) func next() async -> [Mail] {
    await withCheckedContinuation { continuation in
      let ready = state.withLock { state -> [Mail]? in
        state.inHandCount = 0
        if state.mail.isEmpty, !state.isClosed {
          precondition(state.reader == nil, "one task reads a mailbox")
          state.reader = continuation
          return nil
        }
        return Self.handOut(&state)
      }
      if let ready { continuation.resume(returning: ready) }
    }
  }

  /// What has come since `next`, without waiting.
  package func takeMore() -> [Mail] {
    state.withLock { state in
      let inHandCount = state.inHandCount
      defer { state.inHandCount += inHandCount }
      return Self.handOut(&state)
    }
  }

  package func close() {
    let reader = state.withLock { state -> CheckedContinuation<[Mail], Never>? in
      state.isClosed = true
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume(returning: [])
  }
}
