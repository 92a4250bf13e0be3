import Glibc
import Parley
import ParleyLocalAPI

/// The page for browsers.
enum PageCommands {
  /// Nil when it is off, or cannot be served and nobody asked for it.
  static func server(of node: any NodeServing, home: String, _ invocation: Invocation) throws -> LocalServer? {
    if invocation.value("--page") == "off" { return nil }
    let port = try invocation.number("--page", in: UInt16(1)...UInt16.max)
    let folder = invocation.value("--downloads").map(Home.absolute) ?? Home.downloads(home: home)
    do {
      return try LocalServer(pageOf: node, home: home, port: port, downloadsFolder: folder)
    } catch {
      guard port == nil else { throw error }
      Terminal.note("parley: no page for browsers: \(error)")
      return nil
    }
  }

  static func page(_ invocation: Invocation) throws {
    let home = try Home.path(invocation)
    let answer = try NodeClient(home: home).call("GET", ["page"])
    guard let address = answer["address"]?.string else {
      throw Failure(.unavailable, "this node serves no page: start it without --page off")
    }
    if invocation.has("--open") { return try open(address, home: home) }
    Terminal.line(invocation.isJSON ? answer.text : address)
  }

  /// Through a private file that sends the browser on: what is in an argument everybody on this machine can read.
  private static func open(_ address: String, home: String) throws(Failure) {
    let path = "\(home)/page.html"
    unlink(path)
    let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .system(.cannotCreate, path.escapedLine) }
    let text = "<!DOCTYPE html><meta charset=utf-8><meta http-equiv=refresh content=\"0; url=\(address)\">\n"
    let isWritten = write(descriptor, text, text.utf8.count) == text.utf8.count
    close(descriptor)
    guard isWritten else { throw .system(.cannotCreate, path.escapedLine) }
    var arguments = [strdup("xdg-open"), strdup(path), nil]
    defer { for argument in arguments { free(argument) } }
    var child: pid_t = 0
    let failure = posix_spawnp(&child, "xdg-open", nil, nil, &arguments, environ)
    guard failure == 0 else {
      unlink(path)
      throw Failure(.unavailable, "there is no xdg-open here: print the address with parley page and open it yourself")
    }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    guard status == 0 else {
      unlink(path)
      throw Failure(.unavailable, "no browser could be opened: print the address with parley page")
    }
    Terminal.note("Opened in your browser.")
  }
}
