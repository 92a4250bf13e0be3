import Parley

/// Login tokens.
extension Router {
  func organiser(_ name: String) async throws -> Reply {
    let name = try ChannelName(name)
    return Self.organiser(try await node.organiser(of: name), of: name)
  }

  func setOrganiser(_ name: String, _ request: Request) async throws -> Reply {
    let name = try ChannelName(name)
    try await node.setOrganiser(try Fields(request, known: ["organiser"]).organiser("organiser"), in: name)
    return Self.organiser(try await node.organiser(of: name), of: name)
  }

  private static func organiser(_ key: OrganiserKey?, of name: ChannelName) -> Reply {
    .json(["channel": .string(name.text), "organiser": key.map { .string($0.text) } ?? .null])
  }

  func token() async -> Reply { .json(JSON(await node.loginToken())) }

  func useToken(_ request: Request) async throws -> Reply {
    let token = try LoginToken(try Fields(request, known: ["token"]).required("token"))
    try await node.logIn(with: token)
    return .json(JSON(token))
  }
}

extension Fields {
  func organiser(_ name: String) throws(Problem) -> OrganiserKey? {
    guard let text = try string(name) else { return nil }
    guard let key = OrganiserKey(anyText: text) else {
      throw .badRequest("\"\(name)\" must be an organiser's key: 52 characters of a–z and 2–7, or k4.public.…")
    }
    return key
  }
}

extension JSON {
  package init(_ token: LoginToken?) {
    guard let token else {
      self = ["token": .null]
      return
    }
    self = [
      "token": .string(token.text), "sub": .string(token.subject.text), "name": .string(token.name),
      "channel": token.channel.map { .string($0.text) } ?? .null, "role": token.role.map { .string($0) } ?? .null,
      "iat": .string(token.validFrom.text), "exp": .string(token.expires.text),
      "kid": token.keyID.map { .string($0) } ?? .null,
    ]
  }
}

extension RenderedEvent {
  static func token(_ event: NodeEvent) -> (type: String, data: JSON) {
    switch event {
    case .tokenAccepted(let name, let peer, let word):
      (
        "token_accepted",
        [
          "channel": .string(name.text), "peer_id": .string(peer.text), "fingerprint": .string(peer.fingerprint),
          "organiser_name": .string(word.name), "organiser_role": word.role.map { .string($0) } ?? .null,
          "expires": .string(word.expires.text),
        ]
      )
    case .tokenRefused(let name, let peer, let refusal, let isSelf):
      (
        "token_refused",
        [
          "channel": .string(name.text), "peer_id": .string(peer.text), "fingerprint": .string(peer.fingerprint),
          "self": .bool(isSelf), "reason": .string(refusal.code), "detail": .string(refusal.description),
        ]
      )
    case .tokenExpiring(let token):
      (
        "token_expiring",
        [
          "expires": .string(token.expires.text), "channel": token.channel.map { .string($0.text) } ?? .null,
        ]
      )
    default: preconditionFailure("the caller gives events of tokens")
    }
  }
}
