import ParleyVocabulary
import ParleyWire

@testable import ParleySealing

// What messages carry beside what they say.
extension Facts {
  static let onlineOnly = options { $0.isOnlineOnly = true }
  static let delivery = options {
    $0.ext = []
    $0.needsReceipt = true
    $0.priority = .high
    $0.webhookEnvironment = "Stage123"
    $0.isBroadcast = true
    $0.translation = Translation(
      into: ["de", "zh-Hans", "sr-Latn-RS"], texts: [("zh-Hans", "是"), ("de", "ja \"ja\"")])
    $0.isOnlineOnly = true
  }

  static func directed(count: Int) -> MessageOptions {
    options {
      $0.priority = .low
      $0.direction = MessageDirection(
        channel: kitchen.id,
        receivers: (0..<count).map { PeerID(Bytes32([UInt8($0)] + (1..<32).map { UInt8($0) })!) })
    }
  }

  private static func options(_ change: (inout MessageOptions) -> Void) -> MessageOptions {
    var options = MessageOptions.none
    change(&options)
    return options
  }

  /// What is there.
  static func meaning(_ options: MessageOptions) -> [JSONMember] {
    var members: [JSONMember] = []
    if options.needsReceipt { members.append(JSONMember("needs_receipt", true)) }
    if options.priority != .normal { members.append(JSONMember("priority", options.priority.rawValue)) }
    if let name = options.webhookEnvironment { members.append(JSONMember("webhook_env", name)) }
    if options.isBroadcast { members.append(JSONMember("broadcast", true)) }
    let translation = options.translation
    if !translation.languages.isEmpty {
      members.append(JSONMember("target_languages", .array(translation.languages.map { .string($0) })))
    }
    if !translation.texts.isEmpty {
      members.append(
        JSONMember("translations", .object(translation.texts.map { JSONMember($0.language, $0.text) })))
    }
    if options.isOnlineOnly { members.append(JSONMember("online_only", true)) }
    if let direction = options.direction {
      members.append(JSONMember("channel_id", direction.channel.text))
      members.append(JSONMember("receivers", .array(direction.receivers.map { .string($0.text) })))
    }
    return members
  }
}

extension RemoteMediaKind {
  var value: [JSONMember] {
    var members = [
      JSONMember("remote_url", url), JSONMember("file_name", fileName),
      JSONMember("size", byteCount.map { .integer(Int64($0)) } ?? .null),
      JSONMember("mime", mimeType.map { .string($0) } ?? .null),
    ]
    if type == "voice" || type == "video" {
      members.append(JSONMember("duration", duration.map { .integer(Int64($0)) } ?? .null))
    }
    guard type != "voice" else { return members }
    members.append(JSONMember("width", width.map { .integer(Int64($0)) } ?? .null))
    return members + [JSONMember("height", height.map { .integer(Int64($0)) } ?? .null)]
  }
}
