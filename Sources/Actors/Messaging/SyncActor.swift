import Glibc
import ParleyStore
import ParleyVocabulary

package struct SyncMail: Sendable {
  let log: LogSync
  /// Committed last.
  let batch: UInt64
}

/// Syncs what the store has committed for nobody who waits: entries of others, which are shown already and are only to
/// be acknowledged. A thread of its own, so that no commit waits for the disk; one sync serves all that gathers.
package actor SyncActor {
  private let executor: ThreadExecutor
  private let switchboard: Switchboard
  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// A sync costs a processor as much as a commit. Acknowledgements have 100 ms.
  private static let gatherMicroseconds: UInt32 = 20_000

  package init(executor: ThreadExecutor, _ switchboard: Switchboard) {
    self.executor = executor
    self.switchboard = switchboard
  }

  /// Runs until the store ends.
  package func run() async {
    while true {
      var mail = await switchboard.sync.next()
      guard !mail.isEmpty else { return }
      // Nothing else runs on this thread.
      usleep(Self.gatherMicroseconds)
      mail += switchboard.sync.takeMore()
      let last = mail[mail.count - 1]
      do {
        try last.log.sync()
        switchboard.post(.messaging(.synced(through: last.batch)))
      } catch {
        switchboard.store.post(.syncFailed(error))
      }
    }
  }
}
