import Parley

/// Who is who.
extension Router {
  func verification(_ peer: String) async throws -> Reply { .json(JSON(try await node.verification(of: peer))) }

  func verify(_ peer: String, _ request: Request) async throws -> Reply {
    let scanned = request.body.isEmpty ? nil : try Fields(request, known: ["scanned"]).string("scanned")
    return .json(JSON(try await node.verify(peer, scanned: scanned)), status: 201)
  }

  func unverify(_ peer: String) async throws -> Reply { .json(JSON(try await node.unverify(peer))) }

  func block(_ peer: String, _ request: Request) async throws -> Reply {
    guard let isBlocked = try Fields(request, known: ["blocked"]).bool("blocked") else {
      throw Problem.badRequest("the body lacks \"blocked\": true or false")
    }
    return .json(JSON(isBlocked ? try await node.block(peer) : try await node.unblock(peer)))
  }

  func contacts() async throws -> Reply { .json(.array(try await node.contacts().map { JSON($0) })) }
}

extension JSON {
  package init(_ recognition: Recognition) {
    var alike: [PeerID] = []
    var posesAs: PeerID?
    switch recognition.likeness {
    case .none: break
    case .others(let others): alike = others
    case .verified(let other): posesAs = other
    }
    self = [
      "verified": .bool(recognition.isVerified), "blocked": .bool(recognition.isBlocked),
      "looks_like": .array(alike.map { .string($0.text) }), "poses_as": posesAs.map { .string($0.text) } ?? .null,
      "organiser_name": recognition.organiserWord.map { .string($0.name) } ?? .null,
      "organiser_role": recognition.organiserWord?.role.map { .string($0) } ?? .null,
      "token": recognition.organiserWord != nil ? "valid" : recognition.tokenRefusal.map { .string($0.code) } ?? .null,
    ]
  }

  package init(_ verification: Verification) {
    self = [
      "peer_id": .string(verification.peer.text), "display_name": .string(verification.displayName),
      "fingerprint": .string(verification.peer.fingerprint), "code": .string(verification.code),
      "qr": .string(verification.qrText), "verified": .bool(verification.isVerified),
    ]
  }

  package init(_ contact: Contact) {
    self = [
      "peer_id": .string(contact.peer.text), "display_name": .string(contact.displayName),
      "fingerprint": .string(contact.peer.fingerprint),
      "verified_at": contact.verifiedAt.map { .string($0.text) } ?? .null, "blocked": .bool(contact.isBlocked),
    ]
  }
}
