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
  /// Everything in the profile is sealed with a passphrase, and none was given.
  case passphraseNeeded(path: String)
  case wrongPassphrase(path: String)
  /// A passphrase was given, and the profile has none.
  case noPassphrase(path: String)
  /// A passphrase is to be set, and the profile has one.
  case hasPassphrase(path: String)
  /// An identity is to be put where one is.
  case hasIdentity(path: String)
  case passphraseLength(byteCount: Int, byteCountMax: Int)
  /// Written by a later version; left untouched.
  case newerVersion(path: String, version: Int)
  /// The system has no memory for what a passphrase takes.
  case noMemory(kibibytes: Int)
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
    case .passphraseNeeded(let path):
      "\(path.escapedLine) is sealed with a passphrase, and none was given; nothing was changed: give it"
    case .wrongPassphrase(let path):
      "this is not the passphrase of \(path.escapedLine); nothing was changed: try again"
    case .noPassphrase(let path):
      "\(path.escapedLine) has no passphrase, and one was given; nothing was changed: leave it away, or set one with "
        + "parley passphrase set"
    case .hasPassphrase(let path):
      "\(path.escapedLine) has a passphrase; nothing was changed: use parley passphrase change"
    case .hasIdentity(let path):
      "\(path.escapedLine) has an identity, which is never replaced; nothing was changed: choose another home"
    case .passphraseLength(let byteCount, let byteCountMax):
      "the passphrase is \(byteCount) bytes; 1 to \(byteCountMax) are allowed"
    case .newerVersion(let path, let version):
      "\(path.escapedLine) was written by a newer version (format \(version)): update this program; the file was not "
        + "touched"
    case .noMemory(let kibibytes):
      "there is no memory for the \(kibibytes >> 10) MiB that the passphrase takes; nothing was changed: close "
        + "something, try again"
    case .system(let path, let operation, let code):
      "cannot \(operation) \(path.escapedLine): \(String(cString: strerror(code))); what was there was kept"
    }
  }
}
