import Glibc
import Parley
import ParleyLocalAPI

enum TokenCommands {
  static func token(_ invocation: Invocation) throws {
    let action = invocation["key|issue|inspect|use|show"]
    let known = ["key": [], "issue": issueOptions, "inspect": ["--organiser"], "use": [], "show": []]
    guard let options = known[action] else {
      throw Failure.usage("say key, issue, inspect, use or show: see parley token --help")
    }
    for option in issueOptions + ["--organiser"] where invocation.has(option) && !options.contains(option) {
      throw Failure.usage("\(option) is not for parley token \(action)")
    }
    switch action {
    case "key": try makeKey(invocation)
    case "issue": try issue(invocation)
    case "use": try use(invocation)
    case "show": try show(invocation)
    default: try inspect(invocation)
    }
  }

  private static let issueOptions = ["--key-file", "--sub", "--name", "--channel", "--role", "--expires"]

  private static func makeKey(_ invocation: Invocation) throws {
    let path = invocation["FILE"]
    guard !path.isEmpty else { throw Failure.usage("say where to keep the key: parley token key FILE") }
    do throws(ParleyError) {
      let secret = try OrganiserSecret.create(at: path)
      let key = secret.publicKey
      if invocation.isJSON {
        return Terminal.line(
          (["organiser": .string(key.text), "paserk": .string(key.paserkText), "kid": .string(key.keyID)] as JSON)
            .text)
      }
      Terminal.line("Kept in \(path.escapedLine), for you alone. Members check tokens with the public key:")
      Terminal.line(key.text)
    } catch { throw Failure(error) }
  }

  private static func issue(_ invocation: Invocation) throws {
    guard invocation["FILE"].isEmpty else { throw Failure.usage("the token goes to standard output: … > FILE") }
    func needed(_ option: String) throws(Failure) -> String {
      guard let value = invocation.value(option) else { throw .usage("\(option) is missing: see parley token --help") }
      return value
    }
    let path = try needed("--key-file")
    guard let peer = PeerID(text: try needed("--sub")) else {
      throw Failure.usage("--sub needs a full ID of 52 characters, which parley id prints at theirs")
    }
    do {
      let name = try DisplayName(try needed("--name"))
      let channel = try invocation.value("--channel").map { try ChannelName($0) }
      let seconds = try invocation.seconds("--expires", in: OrganiserSecret.lifetimes) ?? 8 * 3_600
      let token = try OrganiserSecret.open(path).issue(
        to: peer, name: name, channel: channel, role: invocation.value("--role"), seconds: seconds)
      Terminal.line(invocation.isJSON ? json(of: token).setting("token", to: .string(token.text)).text : token.text)
    } catch let error as ParleyError { throw Failure(error) } catch let error as NameError {
      throw Failure(.badData, error.description)
    }
  }

  private static func inspect(_ invocation: Invocation) throws {
    let file = invocation["FILE"]
    let key = try invocation.value("--organiser").map { try organiser($0) }
    do throws(ParleyError) {
      let token = try LoginToken(try text(from: file.isEmpty ? "-" : file))
      let refusal = key.flatMap { token.signatureRefusal($0) } ?? token.refusalNow()
      if invocation.isJSON {
        let checked = json(of: token)
          .setting("signature", to: key.map { token.signatureRefusal($0) == nil ? "good" : "bad" } ?? "not_checked")
          .setting("refused", to: refusal.map { .string($0.code) } ?? .null)
        Terminal.line(checked.text)
      } else {
        for line in lines(of: token, key, refusal) { Terminal.line(line) }
      }
      if let refusal { throw .badToken(refusal) }
    } catch { throw Failure(error) }
  }

  private static func use(_ invocation: Invocation) throws {
    let file = invocation["FILE"]
    let token: LoginToken
    do throws(ParleyError) { token = try LoginToken(try text(from: file.isEmpty ? "-" : file)) } catch {
      throw Failure(error)
    }
    let answer = try NodeClient(home: Home.path(invocation)).call(
      "PUT", ["token"], body: ["token": .string(token.text)])
    if invocation.isJSON { return Terminal.line(answer.text) }
    for line in lines(of: token, nil, nil).dropLast(2) { Terminal.line(line) }
    Terminal.line("Logged in. Whether a channel's organiser signed it, each channel shows: parley members CHANNEL")
  }

  private static func show(_ invocation: Invocation) throws {
    let answer = try NodeClient(home: Home.path(invocation)).call("GET", ["token"])
    if invocation.isJSON { return Terminal.line(answer.text) }
    guard let text = answer["token"]?.string, let token = try? LoginToken(text) else {
      return Terminal.line("No login token is in use: parley token use FILE")
    }
    for line in lines(of: token, nil, nil).dropLast(2) { Terminal.line(line) }
  }

  static func organiser(_ invocation: Invocation) throws {
    let name = try ChannelCommands.channelName(invocation)
    let client = try NodeClient(home: Home.path(invocation))
    let key = invocation["KEY"]
    let answer =
      key.isEmpty
      ? try client.call("GET", ["channels", name, "organiser"])
      : try client.call(
        "PUT", ["channels", name, "organiser"],
        body: ["organiser": key == "none" ? .null : .string(try organiser(key).text)])
    if invocation.isJSON { return Terminal.line(answer.text) }
    Terminal.line(
      answer["organiser"]?.string.map { "\(name.escapedLine) asks for login tokens signed by \($0.escapedLine)" }
        ?? "\(name.escapedLine) asks for no login tokens")
  }

  static func organiser(_ text: String) throws(Failure) -> OrganiserKey {
    guard let key = OrganiserKey(anyText: text) else {
      throw .usage("\(text.escapedLine) is not an organiser's key: 52 characters, or k4.public.…")
    }
    return key
  }

  /// Of a file; `-` for standard input.
  static func text(from path: String) throws(ParleyError) -> String {
    let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .noSuchFile(path: path) }
    defer { if descriptor != STDIN_FILENO { close(descriptor) } }
    let what = path == "-" ? "the token on standard input" : path.escapedLine
    do throws(Failure) {
      let bytes = try Terminal.readAll(descriptor, byteCountMax: Limit.tokenByteCountMax + 16, what: what)
      guard let text = String(validating: bytes, as: UTF8.self) else {
        throw Failure(.badData, "\(what) is not UTF-8")
      }
      return text
    } catch { throw .badToken(.malformed(error.message)) }
  }

  private static func json(of token: LoginToken) -> JSON {
    [
      "sub": .string(token.subject.text), "name": .string(token.name),
      "channel": token.channel.map { .string($0.text) } ?? .null, "role": token.role.map { .string($0) } ?? .null,
      "iat": .string(token.validFrom.text), "exp": .string(token.expires.text),
      "kid": token.keyID.map { .string($0) } ?? .null,
    ]
  }

  private static func lines(of token: LoginToken, _ key: OrganiserKey?, _ refusal: TokenRefusal?) -> [String] {
    var lines = [
      "Name        \(token.name.escapedLine)",
      "ID          \(token.subject.text)  (\(token.subject.fingerprint))",
      "Channel     \(token.channel?.text.escapedLine ?? "any")",
    ]
    if let role = token.role { lines.append("Role        \(role.escapedLine)") }
    lines += [
      "Valid from  \(token.validFrom.text)", "Expires     \(token.expires.text)",
      "Key         \(token.keyID?.escapedLine ?? "not named")",
    ]
    if let key {
      lines.append("Signature   \(token.signatureRefusal(key) == nil ? "by this organiser" : "NOT by this organiser")")
    } else {
      lines.append("Signature   not checked: say whose with --organiser KEY")
    }
    if refusal == nil { lines.append(key == nil ? "The dates are good." : "The token is good.") }
    return lines
  }
}

extension Invocation {
  /// A length of time in whole seconds: `45s`, `30m`, `8h`, `7d`.
  func seconds(_ option: String, in range: ClosedRange<Int>) throws(Failure) -> Int? {
    guard let text = value(option) else { return nil }
    guard let count = Self.seconds(text), range.contains(count) else {
      throw .usage("\(option) needs a time such as 45s, 30m, 8h or 7d, of at most a year, not \(text.escapedLine)")
    }
    return count
  }

  static func seconds(_ text: String) -> Int? {
    let units: [Character: Int] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
    guard let unit = text.last.flatMap({ units[$0] }) else { return nil }
    let digits = text.dropLast()
    guard !digits.isEmpty, digits.allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(digits) else {
      return nil
    }
    let (product, overflow) = number.multipliedReportingOverflow(by: unit)
    return overflow ? nil : product
  }
}
