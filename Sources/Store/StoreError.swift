/// Why the store could not do what it was asked. Whatever was acknowledged before stays as it was.
package enum StoreError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Another connection, of this process or of another, has the file.
  case locked(path: String)
  /// No room left on the disk (or a quota); the batch was not applied.
  case full(path: String, reason: String)
  /// The file or its directory cannot be written.
  case readOnly(path: String, reason: String)
  /// Not there, not a file, or not to be opened for another reason of the system's.
  case cannotOpen(path: String, reason: String)
  /// Written by a later version; left untouched.
  case newerVersion(path: String, version: Int, versionMax: Int)
  /// A sound SQLite database of another program; left untouched.
  case foreign(path: String)
  /// What was read cannot have been written by the store. At start such a file is set aside instead.
  case damaged(path: String, reason: String)
  case inputOutput(path: String, reason: String)
  /// A number that the protocol does not allow, or that a column cannot hold in order.
  case outOfRange(field: String, value: UInt64, min: UInt64, max: UInt64)
  /// What SQLite says only of mistakes in this program.
  case unexpected(path: String, code: Int32, reason: String)
  /// What is in it is sealed, and no key was given; left untouched.
  case sealed(path: String)
  /// Sealed under another key than the one given; left untouched.
  case otherSeal(path: String)
  /// The node that used it has stopped.
  case closed

  package var description: String {
    switch self {
    case .locked(let path):
      "\(path) is in use by another process: stop that one, or choose another home"
    case .full(let path, let reason):
      "the disk that holds \(path) is full (\(reason)): nothing of this write was kept, everything before it is safe; "
        + "make room and try again"
    case .readOnly(let path, let reason):
      "\(path) cannot be written (\(reason)): allow writing there, or choose another home"
    case .cannotOpen(let path, let reason): "\(path) cannot be opened: \(reason)"
    case .newerVersion(let path, let version, let versionMax):
      "\(path) was written by a newer version (format \(version), this program knows \(versionMax)): "
        + "update this program; the file was not touched"
    case .foreign(let path): "\(path) is another program's database: choose another home; the file was not touched"
    case .damaged(let path, let reason): "\(path) is damaged: \(reason)"
    case .inputOutput(let path, let reason): "the disk failed on \(path): \(reason)"
    case .outOfRange(let field, let value, let min, let max): "\(field) is \(value), outside \(min) to \(max)"
    case .unexpected(let path, let code, let reason): "SQLite refused a statement on \(path) (\(code)): \(reason)"
    case .sealed(let path):
      "\(path) is sealed, and its profile has no passphrase: bring the profile back that it belongs to; the file was "
        + "not touched"
    case .otherSeal(let path):
      "\(path) is sealed by another profile's key: bring the profile back that it belongs to; the file was not touched"
    case .closed: "the message store is closed: the node has stopped"
    }
  }
}
