import Glibc
import Parley

/// Where a node keeps everything.
enum Home {
  /// `--home`, else PARLEY_HOME, else XDG_DATA_HOME/parley, else ~/.local/share/parley. Absolute.
  static func path(_ invocation: Invocation) throws(Failure) -> String {
    if let option = invocation.value("--home") {
      guard !option.isEmpty else { throw .usage("--home needs a folder") }
      return absolute(option)
    }
    if let text = environment("PARLEY_HOME") { return absolute(text) }
    // The specification asks to ignore relative paths there.
    if let text = environment("XDG_DATA_HOME"), text.hasPrefix("/") { return text + "/parley" }
    guard let user = environment("HOME") else {
      throw .usage("HOME is not set: say where the node keeps its things with --home DIR")
    }
    return absolute(user) + "/.local/share/parley"
  }

  static func absolute(_ path: String) -> String {
    if path.hasPrefix("/") { return path }
    guard let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    return path.isEmpty || path == "." ? String(cString: folder) : String(cString: folder) + "/" + path
  }

  /// Where the user's downloads go: what XDG's settings or habit say; the node's home for a user without one.
  static func downloads(home: String) -> String {
    if let folder = environment("XDG_DOWNLOAD_DIR"), folder.hasPrefix("/") { return folder }
    return (environment("HOME").map(absolute) ?? home) + "/Downloads"
  }

  static var loginName: String? {
    if let entry = getpwuid(getuid()), let name = entry.pointee.pw_name { return String(cString: name) }
    return environment("USER")
  }

  private static func environment(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }
}
