import Glibc
import ParleyVocabulary

/// A folder of one test's own, removed with all in it when it goes.
final class TemporaryFolder: Sendable {
  let path: String

  init(in parent: String = "/tmp") {
    var template = Array((parent + "/parley-test-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else { fatalError("\(parent) takes no folder") }
    path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }

  deinit { Self.removeAll(path) }

  private static func removeAll(_ path: String) {
    for name in names(in: path) where remove(path + "/" + name) != 0 { removeAll(path + "/" + name) }
    remove(path)
  }

  func write(_ bytes: [UInt8], _ name: String) {
    let file = open(path + "/" + name, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    precondition(file >= 0 && Glibc.write(file, bytes, bytes.count) == bytes.count)
    close(file)
  }

  func read(_ name: String) -> [UInt8]? {
    let file = open(path + "/" + name, O_RDONLY | O_NOFOLLOW)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var status = stat()
    fstat(file, &status)
    return [UInt8](unsafeUninitializedCapacity: Int(status.st_size)) { buffer, count in
      count = max(0, Glibc.read(file, buffer.baseAddress, buffer.count))
    }
  }

  /// Hidden names included.
  var names: [String] { Self.names(in: path) }

  static func names(in path: String) -> [String] {
    var names: [String] = []
    guard let folder = opendir(path) else { return names }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  func mode(_ name: String) -> mode_t {
    var status = stat()
    stat(path + "/" + name, &status)
    return status.st_mode & 0o7777
  }
}

/// Bytes that differ from block to block.
func pattern(_ byteCount: Int) -> [UInt8] {
  (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ $0 >> 16) }
}
