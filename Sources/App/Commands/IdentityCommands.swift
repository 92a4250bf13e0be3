import Glibc
import Parley
import ParleyLocalAPI

enum IdentityCommands {
  static func identity(_ invocation: Invocation) throws {
    let home = try Home.path(invocation)
    let path = invocation["FILE"]
    do {
      switch invocation["export|import"] {
      case "export": try export(home, path, invocation)
      case "import": try bring(home, path, invocation)
      case let word: throw Failure.usage("say export or import, not \(word.escapedLine)")
      }
    } catch let error as ParleyError { throw Failure(error) }
  }

  private static func export(_ home: String, _ path: String, _ invocation: Invocation) throws {
    let own = try Secrets.homePassphrase(home, invocation)
    let passphrase = try Secrets.new("--file-passphrase-file", invocation, question: "Passphrase for the file: ")
    // Before the home says that it was exported.
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw Failure.system(.cannotCreate, path.escapedLine) }
    defer { close(file) }
    do {
      let bytes = try HomeIdentity.export(home: home, homePassphrase: own, filePassphrase: passphrase)
      guard Terminal.writeAll(bytes, to: file), fsync(file) == 0 else {
        throw Failure.system(.cannotCreate, path.escapedLine)
      }
    } catch {
      unlink(path)
      throw error
    }
    Terminal.line(
      invocation.isJSON
        ? (["event": "identity_exported", "path": .string(path)] as JSON).text
        : "Written to \(path.escapedLine). Once it is imported elsewhere, use this home no more.")
  }

  private static func bring(_ home: String, _ path: String, _ invocation: Invocation) throws {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw Failure.system(.noInput, path.escapedLine) }
    defer { close(file) }
    let bytes = try Terminal.readAll(file, byteCountMax: HomeIdentity.byteCountMax, what: path.escapedLine)
    let passphrase = try Secrets.given(
      "--file-passphrase-file", invocation, question: "Passphrase of \(path.escapedLine): ")
    let peer = try HomeIdentity.importing(bytes, path: path, filePassphrase: passphrase, home: home)
    Terminal.line(
      invocation.isJSON
        ? (["event": "identity_imported", "peer_id": .string(peer.text)] as JSON).text
        : "You are \(peer.fingerprint) here. Use the old home no more: one identity runs in one place.")
  }
}
