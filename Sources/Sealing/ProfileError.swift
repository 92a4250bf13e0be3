import Glibc
import ParleyVocabulary

/// Why a profile could not be opened, read or written. Nothing that was there before is ever replaced because of one.
package enum ProfileError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Another node runs on this profile; its process, when the lock file says it.
  case inUse(path: String, processID: Int32?)
  case notADirectory(path: String)
  /// Others may read or write what must be private; `mode` is the low nine bits.
  case notPrivate(path: String, mode: UInt32)
  case ownedByAnother(path: String, owner: UInt32)
  case damaged(path: String, reason: String)
  /// The system refused; `code` is errno.
  case system(path: String, operation: String, code: Int32)

  /// Whether the disk is full or may not be written: what is there can be used all the same.
  package var isUnwritable: Bool {
    if case .system(_, _, let code) = self { [EROFS, EACCES, EPERM, ENOSPC, EDQUOT].contains(code) } else { false }
  }

  package var isMissing: Bool { if case .system(_, _, ENOENT) = self { true } else { false } }
  package var isThereAlready: Bool { if case .system(_, _, EEXIST) = self { true } else { false } }

  package var description: String {
    switch self {
    case .inUse(let path, let processID):
      "\(path.escapedLine) is in use" + (processID.map { " by process \($0)" } ?? "")
        + ": end that node or choose another home"
    case .notADirectory(let path): "\(path.escapedLine) is not a directory: choose another home"
    case .notPrivate(let path, let mode):
      "\(path.escapedLine) is open to others (mode \(String(mode, radix: 8))); nothing was changed: "
        + "take their rights away with chmod go-rwx and make sure that nobody has copied it"
    case .ownedByAnother(let path, let owner):
      "\(path.escapedLine) belongs to user \(owner); nothing was changed: choose another home"
    case .damaged(let path, let reason):
      "\(path.escapedLine) is damaged (\(reason)); it was kept as it is: restore it from a backup or move it away"
    case .system(let path, let operation, let code):
      "cannot \(operation) \(path.escapedLine): \(String(cString: strerror(code))); what was there was kept"
    }
  }
}
