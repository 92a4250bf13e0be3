import ParleyVocabulary
import ParleyWire

private let id = Facts.ana.peerID.text
private let rest =
  #""sender":{"display_name":"Ana","sender_id":"\#(id)"},"message_id":"m","timestamp":"2021-03-12T09:05:16Z""#

/// Options, commands and media elsewhere that no reader takes: name, JSON, reason, field.
enum MalformedOptions {
  static var all: [(String, String, String, String)] { flags + languages + directions + commands + remote }

  private static func text(_ more: String) -> String { #"{"type":"text",\#(rest),"body":"b",\#(more)}"# }

  private static var flags: [(String, String, String, String)] {
    [
      ("needs_receipt of text", text(#""needs_receipt":"true""#), "malformed", "needs_receipt"),
      ("a priority that there is not", text(#""priority":"highest""#), "malformed", "priority"),
      ("a priority of a number", text(#""priority":1"#), "malformed", "priority"),
      ("a webhook_env of 9 characters", text(#""webhook_env":"abcdefghi""#), "malformed", "webhook_env"),
      ("an empty webhook_env", text(#""webhook_env":"""#), "malformed", "webhook_env"),
      ("a webhook_env with a sign", text(#""webhook_env":"a-b""#), "malformed", "webhook_env"),
      ("a webhook_env beyond ASCII", text(#""webhook_env":"é""#), "malformed", "webhook_env"),
      ("a broadcast of 1", text(#""broadcast":1"#), "malformed", "broadcast"),
      ("online_only of null", text(#""online_only":null"#), "malformed", "online_only"),
    ]
  }

  private static var languages: [(String, String, String, String)] {
    let many = (0..<17).map { #""a\#(UnicodeScalar(UInt8(97 + $0)))""# }.joined(separator: ",")
    let name = "target_languages"
    return [
      ("one language", text(#""target_languages":"de""#), "malformed", name),
      ("no languages", text(#""target_languages":[]"#), "malformed", name),
      ("17 languages", text(#""target_languages":[\#(many)]"#), "too_many", name),
      ("a language twice", text(#""target_languages":["de","de"]"#), "malformed", name),
      ("a language of one letter", text(#""target_languages":["d"]"#), "malformed", name),
      ("a language that ends with a hyphen", text(#""target_languages":["de-"]"#), "malformed", name),
      ("a language with an underscore", text(#""target_languages":["de_AT"]"#), "malformed", name),
      ("a tag of 36 bytes", text(#""target_languages":["aa-bbbbbbbb-cccccccc-dddddddd-eeeeee"]"#), "malformed", name),
      (
        "a translation that was not asked for", text(#""target_languages":["de"],"translations":{"fr":"oui"}"#),
        "malformed", "translations"
      ),
      (
        "a translation of a number", text(#""target_languages":["de"],"translations":{"de":1}"#), "malformed",
        "translations"
      ),
    ]
  }

  private static var directions: [(String, String, String, String)] {
    let channel = #""channel_id":"\#(Facts.kitchen.id.text)""#
    let many = Facts.directedMembers(count: 21)
    return [
      ("receivers without a channel", text(#""receivers":["\#(id)"]"#), "malformed", "channel_id"),
      ("a channel of a name", text(#""channel_id":"kitchen","receivers":["\#(id)"]"#), "malformed", "channel_id"),
      ("a channel without receivers", text(channel), "malformed", "receivers"),
      ("no receivers", text(channel + #","receivers":[]"#), "malformed", "receivers"),
      ("a receiver by name", text(channel + #","receivers":["Ana"]"#), "malformed", "receivers"),
      ("a receiver twice", text(channel + #","receivers":["\#(id)","\#(id)"]"#), "malformed", "receivers"),
      ("21 receivers", text(channel + #","receivers":[\#(many)]"#), "too_many", "receivers"),
    ]
  }

  private static var commands: [(String, String, String, String)] {
    func command(_ own: String) -> String { #"{"type":"cmd",\#(rest)\#(own)}"# }
    let long = String(repeating: "a", count: 129)
    return [
      ("cmd without action", command(""), "malformed", "action"),
      ("cmd of an empty action", command(#","action":"""#), "malformed", "action"),
      ("an action of 129 bytes", command(#","action":"\#(long)""#), "too_long", "action"),
      ("an action em_x", command(#","action":"em_x""#), "malformed", "action"),
      ("an action easemob::x", command(#","action":"easemob::x""#), "malformed", "action"),
      ("an action parley.x", command(#","action":"parley.x""#), "malformed", "action"),
      ("params of a list", command(#","action":"a","params":[]"#), "malformed", "params"),
      ("params with a number", command(#","action":"a","params":{"a":1}"#), "malformed", "params"),
    ]
  }

  private static var remote: [(String, String, String, String)] {
    func photo(_ own: String) -> String { #"{"type":"photo",\#(rest),\#(own)}"# }
    func photo(at url: String) -> String { photo(#""remote_url":"\#(url)","file_name":"f""#) }
    let media = #""media_id":"\#(Facts.media.text)","file_name":"f""#
    let name = "remote_url"
    return [
      ("media here and elsewhere", photo(media + #","remote_url":"http://a""#), "malformed", "media_id"),
      ("an empty remote_url", photo(at: ""), "malformed", name),
      ("a remote_url of another scheme", photo(at: "ftp://a"), "malformed", name),
      ("a remote_url without a host", photo(at: "https:///a"), "malformed", name),
      ("a remote_url of a port alone", photo(at: "http://:80/"), "malformed", name),
      ("a remote_url with a name", photo(at: "http://ana@a/"), "malformed", name),
      ("a remote_url with a space", photo(at: "http://a/b c"), "malformed", name),
      ("a remote_url beyond ASCII", photo(at: "http://a/é"), "malformed", name),
      (
        "a remote_url of 2,049 bytes", photo(at: "http://a/" + String(repeating: "b", count: 2_040)), "too_long", name
      ),
      ("a photo elsewhere without a name", photo(#""remote_url":"http://a""#), "malformed", "file_name"),
      (
        "a voice elsewhere without duration",
        #"{"type":"voice",\#(rest),"remote_url":"http://a","file_name":"f"}"#, "malformed", "duration"
      ),
    ]
  }
}

extension Facts {
  static func directedMembers(count: Int) -> String {
    (0..<count).map { #""\#(PeerID(Bytes32([UInt8($0)] + (1..<32).map { UInt8($0) })!).text)""# }
      .joined(separator: ",")
  }
}
