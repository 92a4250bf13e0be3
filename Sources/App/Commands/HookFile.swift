import Glibc
import Parley
import ParleyLocalAPI

/// The file of `parley up --hooks`: an array of objects, each with `when`, `name`, `command` or `url`, `policy` and
/// `timeout_ms`.
enum HookFile {
  private static let byteCountMax = 1 << 20
  private static let names = ["when", "name", "command", "url", "policy", "timeout_ms"]

  static func read(_ path: String) throws(Failure) -> [Hook] {
    let what = path.escapedLine
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system(.noInput, what) }
    defer { close(descriptor) }
    return try hooks(try Terminal.readAll(descriptor, byteCountMax: byteCountMax, what: what))
  }

  static func hooks(_ bytes: [UInt8]) throws(Failure) -> [Hook] {
    let json: JSON
    do { json = try JSON(parsing: bytes) } catch {
      throw Failure(.badData, "--hooks: the file is no JSON: \(error)")
    }
    guard let items = json.array else { throw Failure(.badData, "--hooks: the file must hold an array of hooks") }
    var hooks: [Hook] = []
    for item in items { hooks.append(try hook(item)) }
    return hooks
  }

  private static func hook(_ json: JSON) throws(Failure) -> Hook {
    for member in json.members ?? [] where !names.contains(member.name) {
      throw bad("\(member.name.escapedLine) is no member of a hook: \(names.joined(separator: ", "))")
    }
    guard let moment = Hook.Moment(rawValue: json["when"]?.string ?? "") else {
      throw bad("\"when\" must be \"before_send\", \"after_send\" or \"translate\"")
    }
    let target: Hook.Target
    switch (json["command"]?.string, json["url"]?.string) {
    case (let path?, nil): target = .command(path)
    case (nil, let url?): target = .address(url)
    default: throw bad("a hook needs a \"command\" (an absolute path) or a \"url\"")
    }
    var policy = Hook.Policy.closed
    if let value = json["policy"] {
      guard let known = Hook.Policy(rawValue: value.string ?? "") else {
        throw bad("\"policy\" must be \"open\" or \"closed\"")
      }
      policy = known
    }
    var milliseconds = 5_000
    if let value = json["timeout_ms"] {
      guard let number = value.integer else { throw bad("\"timeout_ms\" must be a whole number") }
      milliseconds = Int(number)
    }
    var name = Hook.defaultName
    if let value = json["name"] {
      guard let text = value.string else { throw bad("\"name\" must be a string") }
      name = text
    }
    do throws(ParleyError) {
      return try Hook(moment, named: name, target, policy: policy, milliseconds: milliseconds)
    } catch { throw Failure(error) }
  }

  private static func bad(_ reason: String) -> Failure { Failure(.badData, "--hooks: \(reason)") }
}
