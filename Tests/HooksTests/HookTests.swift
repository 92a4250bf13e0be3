import Glibc
import Testing

@testable import ParleyHooks

/// A hook is asked one question, answers in time and in bounds, or is cut off.
@Suite(.timeLimit(.minutes(1)))
struct HookCallTests {
  private let folder = ProgramFolder()

  private func run(_ script: String, milliseconds: Int = 30_000, _ question: String = "{}") -> Result<
    [UInt8], HookError
  > {
    HookCall(.command(folder.program(script)), milliseconds: milliseconds, question: Array(question.utf8)).run()
  }

  @Test func aProgramReadsTheQuestionAndAnswers() {
    let question = String(repeating: "q", count: 60_000)
    #expect(run("exec wc -c", question) == .success(Array("60000\n".utf8)))
    #expect(run("true") == .success([]))
    // One that does not read is no trouble.
    #expect(run("echo yes", String(repeating: "q", count: 400_000)) == .success(Array("yes\n".utf8)))
    // It has its way, and nothing else of the node's environment.
    setenv("PARLEY_TEST_ONLY", "1", 1)
    #expect(run("echo \"$PARLEY_TEST_ONLY$#\"") == .success(Array("0\n".utf8)))
  }

  @Test func oneThatHangsIsCutOffWithAllThatItStarted() throws {
    let mark = folder.path + "/pid"
    let started = run("sh -c 'echo $$ > \(mark); exec tail -f /dev/null' & tail -f /dev/null", milliseconds: 300)
    #expect(started == .failure(.tooSlow(milliseconds: 300)))
    // Its child may not have come as far as saying so.
    guard let pid = text(mark).flatMap({ pid_t($0.filter(\.isNumber)) }) else { return }
    // Gone, or dead and about to be taken away by whoever has it now.
    while let state = text("/proc/\(pid)/stat"), !state.contains(") Z ") { sched_yield() }
  }

  private func text(_ path: String) -> String? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1_024)
    let count = fread(&bytes, 1, bytes.count, file)
    return String(decoding: bytes.prefix(count), as: UTF8.self)
  }

  @Test func oneThatCrashesOrFailsHasNotAnswered() {
    #expect(run("echo yes; exit 3") == .failure(.failed(reason: "it ended with status 3")))
    #expect(run("kill -SEGV $$") == .failure(.failed(reason: "it was ended by signal 11")))
    let missing = HookCall(.command("/nowhere/to/be/found"), milliseconds: 1_000, question: []).run()
    #expect(missing == .failure(.notStarted(reason: "/nowhere/to/be/found: No such file or directory")))
  }

  @Test func anAnswerHasABound() {
    #expect(run("head -c 65536 /dev/zero").map(\.count) == .success(65_536))
    #expect(run("head -c 65537 /dev/zero") == .failure(.tooMuch(byteCountMax: 65_536)))
    #expect(run("exec cat /dev/zero") == .failure(.tooMuch(byteCountMax: 65_536)))
  }

  @Test(.enabled(if: WebServer.isPossible)) func anAddressGetsAPost() throws {
    let server = try #require(WebServer())
    func ask(_ answer: String, milliseconds: Int = 30_000) -> (String, Result<[UInt8], HookError>) {
      let call = HookCall(
        .address("http://127.0.0.1:\(server.port)/hook?a=1"), milliseconds: milliseconds,
        question: Array(#"{"a":1}"#.utf8))
      let heard = server.answer(once: answer)
      let result = call.run()
      return (heard.value, result)
    }
    let (heard, answer) = ask("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nyes")
    #expect(answer == .success(Array("yes".utf8)))
    #expect(heard.hasPrefix("POST /hook?a=1 HTTP/1.1\r\n") && heard.contains("\r\nContent-Type: application/json\r\n"))
    #expect(heard.hasSuffix("\r\n\r\n{\"a\":1}"))
    #expect(ask("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").1 == .success([]))
    #expect(
      ask("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").1
        == .failure(.failed(reason: "it answered with status 302")))
    let long = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + String(repeating: "a", count: 70_000)
    #expect(ask(long).1 == .failure(.tooMuch(byteCountMax: 65_536)))
    #expect(ask("", milliseconds: 200).1 != .success([]))
    let nobody = HookCall(.address("http://127.0.0.1:1/"), milliseconds: 30_000, question: []).run()
    #expect(nobody == .failure(.failed(reason: "nobody answers there")))
  }

  @Test func aLaneAsksInOrderAndNotMoreThanItMay() async {
    let lane = HookLane(threadsMax: 1, countMax: 2)
    let program = folder.program("cat")
    // The first is being asked or waits; of ten more at once at most two can wait beside it.
    let answers = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<10 {
        group.addTask {
          let call = HookCall(.command(program), milliseconds: 30_000, question: [UInt8(number)])
          switch await lane.ask(call) {
          case .success(let bytes): return bytes == [UInt8(number)]
          case .failure(let error): return error == .busy(countMax: 2)
          }
        }
      }
      return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(answers == 10)
    // And it goes on afterwards.
    let last = await lane.ask(HookCall(.command(program), milliseconds: 30_000, question: [77]))
    #expect(last == .success([77]))
  }
}

/// Programs of the test's own.
final class ProgramFolder: Sendable {
  let path: String

  init() {
    var template = Array("/tmp/parley-hooks-XXXXXX".utf8CString)
    path = template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
  }

  deinit {
    guard let folder = opendir(path) else { return }
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      unlink(path + "/" + name)
    }
    closedir(folder)
    rmdir(path)
  }

  func program(_ script: String) -> String {
    let file = "\(path)/hook-\(UInt64.random(in: 0...UInt64.max))"
    let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o700)
    let bytes = Array("#!/bin/sh\n\(script)\n".utf8)
    precondition(descriptor >= 0 && write(descriptor, bytes, bytes.count) == bytes.count, "tests need room in /tmp")
    close(descriptor)
    return file
  }
}

/// Answers one connection after the other on loopback, from threads of its own.
final class WebServer: Sendable {
  static let isPossible = dlopen("libcurl.so.4", RTLD_LAZY) != nil || dlopen("libcurl-gnutls.so.4", RTLD_LAZY) != nil

  let port: UInt16
  private let listener: Int32

  init?() {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(listener, address, length) == 0 && listen(listener, 8) == 0 && getsockname(listener, address, &length) == 0
      }
    }
    guard isBound else { return nil }
    self.listener = listener
    port = UInt16(bigEndian: address.sin_port)
  }

  deinit { close(listener) }

  /// What a caller said, once it is all there.
  final class Heard: @unchecked Sendable {
    // Sendable because it is written by the thread that is joined before it is read.
    fileprivate var text = ""
    fileprivate var thread = pthread_t()
    fileprivate let listener: Int32
    fileprivate let answer: String

    fileprivate init(_ listener: Int32, _ answer: String) {
      self.listener = listener
      self.answer = answer
    }

    var value: String {
      pthread_join(thread, nil)
      return text
    }

    fileprivate func serve() {
      let connection = accept(listener, nil, nil)
      guard connection >= 0 else { return }
      defer { close(connection) }
      var bytes: [UInt8] = []
      var part = [UInt8](repeating: 0, count: 4_096)
      // The question of these tests ends with its brace.
      while bytes.last != UInt8(ascii: "}") {
        let count = read(connection, &part, part.count)
        guard count > 0 else { break }
        bytes += part[..<count]
      }
      text = String(decoding: bytes, as: UTF8.self)
      guard !answer.isEmpty else {
        // Until the caller gives up.
        _ = read(connection, &part, part.count)
        return
      }
      _ = send(connection, answer, answer.utf8.count, Int32(MSG_NOSIGNAL))
    }
  }

  func answer(once answer: String) -> Heard {
    let heard = Heard(listener, answer)
    let status = pthread_create(
      &heard.thread, nil,
      { start in
        Unmanaged<Heard>.fromOpaque(start!).takeRetainedValue().serve()
        return nil
      }, Unmanaged.passRetained(heard).toOpaque())
    precondition(status == 0, "tests need a thread")
    return heard
  }
}
