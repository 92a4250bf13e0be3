import ParleyVocabulary
import ParleyWire

/// Messages that no reader takes as Ana's: name, JSON, reason, field.
private typealias Case = (String, String, String, String)

private let id = Facts.ana.peerID.text
private let sender = #""sender":{"display_name":"Ana","sender_id":"\#(id)"}"#
private let rest = #""message_id":"m","timestamp":"2021-03-12T09:05:16Z""#
private let file = #""media_id":"\#(Facts.media.text)","file_name":"f""#

private func named(_ name: String) -> String {
  #"{"type":"status","sender":{"display_name":"\#(name)","sender_id":"\#(id)"},"body":"online"}"#
}

private func text(_ more: String) -> String { #"{"type":"text",\#(sender),\#(rest),"body":"b"\#(more)}"# }

extension Malformed {
  static var json: [Malformed] {
    (syntax + commonMembers + ownMembers + pictureMembers + placeMembers + combineMembers + options
      + MalformedOptions.all + acts + roles + attributes + deeds).map {
        Malformed("message: " + $0, "message", Array($1.utf8), $2, $3)
      }
      + [
        Malformed(
          "message: not UTF-8", "message", Array(text("").utf8).map { $0 == 0x62 ? 0xFF : $0 }, "malformed", "json")
      ]
  }

  private static func attribute(_ more: String) -> String { #"{"type":"attribute",\#(sender),\#(rest)\#(more)}"# }

  private static var attributes: [Case] {
    let (key, value) = (String(repeating: "k", count: 129), String(repeating: "v", count: 4_097))
    return [
      ("an attribute without a key", attribute(#","value":"v""#), "malformed", "key"),
      ("an attribute with an empty key", attribute(#","key":"","value":"v""#), "malformed", "key"),
      ("an attribute's key of 129 bytes", attribute(#","key":"\#(key)","value":"v""#), "too_long", "key"),
      ("an attribute's value of 4,097 bytes", attribute(#","key":"k","value":"\#(value)""#), "too_long", "value"),
      ("an attribute's value that is null", attribute(#","key":"k","value":null"#), "malformed", "value"),
      ("no attribute until somebody leaves", attribute(#","key":"k","until_leave":true"#), "malformed", "until_leave"),
      ("an attribute that overwrites perhaps", attribute(#","key":"k","overwrite":"no""#), "malformed", "overwrite"),
      (
        "an attribute in the place of no log", attribute(#","key":"k","overwrite":false,"replaces":"01""#),
        "malformed", "replaces"
      ),
      (
        "an attribute that overwrites in the place of one", attribute(#","key":"k","replaces":"0102030405060708""#),
        "malformed", "replaces"
      ), ("typing perhaps", #"{"type":"typing",\#(sender),"body":"perhaps"}"#, "malformed", "body"),
    ]
  }

  private static var syntax: [Case] {
    [
      ("nothing", "", "malformed", "json"), ("no object", "[]", "malformed", "message"),
      ("cut short", #"{"type":"#, "malformed", "json"), ("something behind it", text("") + "x", "malformed", "json"),
      ("a byte order mark", "\u{FEFF}" + text(""), "malformed", "json"),
      ("a member twice", text(#","body":"c""#), "malformed", "json"),
      ("a nested member twice", text(#","x":{"a":1,"a":1}"#), "malformed", "json"),
      ("a lone surrogate", text(#","x":"\ud800""#), "malformed", "json"),
      ("a raw newline", text(",\"x\":\"\n\""), "malformed", "json"),
      ("a NUL in a name", text(#","\u0000":1"#), "malformed", "json"),
      ("a number too large", text(#","x":1e999"#), "malformed", "json"),
      ("an integer too large", text(#","x":9223372036854775808"#), "malformed", "json"),
      ("NaN", text(#","x":NaN"#), "malformed", "json"), ("a comma too many", text(","), "malformed", "json"),
      (
        "17 levels in a member",
        text(#","x":\#(String(repeating: "[", count: 16))1\#(String(repeating: "]", count: 16))"#),
        "too_many", "json depth"
      ),
    ]
  }

  private static var commonMembers: [Case] {
    [
      ("no sender", #"{"type":"text",\#(rest),"body":"b"}"#, "malformed", "sender"),
      ("a sender of text", #"{"type":"text","sender":"Ana",\#(rest),"body":"b"}"#, "malformed", "sender"),
      (
        "no sender_id", #"{"type":"status","sender":{"display_name":"Ana"},"body":"online"}"#, "malformed", "sender_id"
      ),
      (
        "another's sender_id",
        #"{"type":"status","sender":{"display_name":"A","sender_id":"\#(Facts.ben.peerID.text)"},"body":"online"}"#,
        "malformed", "sender_id"
      ),
      (
        "sender_id in capitals",
        #"{"type":"status","sender":{"display_name":"A","sender_id":"\#(id.uppercased())"},"body":"online"}"#,
        "malformed", "sender_id"
      ), ("empty display name", named(""), "malformed", "display_name"),
      ("blank display name", named(" \u{200B}"), "malformed", "display_name"),
      ("display name with a newline", named(#"A\nB"#), "malformed", "display_name"),
      ("display name of 65 bytes", named(String(repeating: "n", count: 65)), "malformed", "display_name"),
      ("no type", "{\(sender)}", "malformed", "type"), ("empty type", #"{"type":"",\#(sender)}"#, "malformed", "type"),
      ("a type of 65 bytes", #"{"type":"\#(String(repeating: "t", count: 65))",\#(sender)}"#, "malformed", "type"),
      ("a number as type", #"{"type":1,\#(sender)}"#, "malformed", "type"),
      (
        "text without message_id", #"{"type":"text",\#(sender),"timestamp":"2021-03-12T09:05:16Z","body":"b"}"#,
        "malformed", "message_id"
      ),
      (
        "text with an empty message_id",
        #"{"type":"text",\#(sender),"message_id":"","timestamp":"2021-03-12T09:05:16Z","body":"b"}"#, "malformed",
        "message_id"
      ),
      ("text without timestamp", #"{"type":"text",\#(sender),"message_id":"m","body":"b"}"#, "malformed", "timestamp"),
      (
        "a timestamp of words", #"{"type":"text",\#(sender),"message_id":"m","timestamp":"today","body":"b"}"#,
        "malformed", "timestamp"
      ),
      (
        "an empty timestamp", #"{"type":"text",\#(sender),"message_id":"m","timestamp":"","body":"b"}"#, "malformed",
        "timestamp"
      ),
      (
        "a timestamp without zone",
        #"{"type":"text",\#(sender),"message_id":"m","timestamp":"2021-03-12T09:05:16.000","body":"b"}"#, "malformed",
        "timestamp"
      ),
    ]
  }

  private static var ownMembers: [Case] {
    [
      ("text without body", #"{"type":"text",\#(sender),\#(rest)}"#, "malformed", "body"),
      ("text of a number", #"{"type":"text",\#(sender),\#(rest),"body":1}"#, "malformed", "body"),
      ("status neither", #"{"type":"status",\#(sender),"body":"away"}"#, "malformed", "body"),
      ("hand of a boolean", #"{"type":"raise_hand",\#(sender),"body":true}"#, "malformed", "body"),
      ("hand of another word", #"{"type":"raise_hand",\#(sender),"body":"True"}"#, "malformed", "body"),
      ("photo without media_id", #"{"type":"photo",\#(sender),\#(rest),"file_name":"f"}"#, "malformed", "media_id"),
      (
        "photo of a short media_id", #"{"type":"photo",\#(sender),\#(rest),"media_id":"abc","file_name":"f"}"#,
        "malformed", "media_id"
      ), ("file without size", #"{"type":"file",\#(sender),\#(rest),\#(file)}"#, "malformed", "size"),
      ("file of a negative size", #"{"type":"file",\#(sender),\#(rest),\#(file),"size":-1}"#, "malformed", "size"),
      ("file of a broken size", #"{"type":"file",\#(sender),\#(rest),\#(file),"size":1.0}"#, "malformed", "size"),
      (
        "file of 2^62 bytes", #"{"type":"file",\#(sender),\#(rest),\#(file),"size":4611686018427387904}"#, "malformed",
        "size"
      ),
      (
        "a file name of 1,025 bytes",
        #"{"type":"photo",\#(sender),\#(rest),"media_id":"\#(Facts.media.text)","file_name":""#
          + String(repeating: "f", count: 1_025) + #""}"#,
        "too_long", "file_name"
      ),
      (
        "a MIME type of 256 bytes",
        #"{"type":"photo",\#(sender),\#(rest),\#(file),"mime":"\#(String(repeating: "m", count: 256))"}"#, "too_long",
        "mime"
      ), ("30,001 bytes", String(repeating: " ", count: 30_001), "too_long", "message"),
    ]
  }

  private static var pictureMembers: [Case] {
    func photo(_ more: String) -> String { #"{"type":"photo",\#(sender),\#(rest),\#(file),\#(more)}"# }
    func video(_ more: String) -> String { #"{"type":"video",\#(sender),\#(rest),\#(file)\#(more)}"# }
    return [
      ("a width of nothing", photo(#""width":0"#), "malformed", "width"),
      ("a width of 2^31", photo(#""width":2147483648"#), "malformed", "width"),
      ("a height of text", photo(#""height":"10""#), "malformed", "height"),
      ("an original of 1", photo(#""original":1"#), "malformed", "original"),
      ("a gif of text", photo(#""gif":"true""#), "malformed", "gif"),
      ("a big picture of a short ID", photo(#""big_media_id":"abc""#), "malformed", "big_media_id"),
      ("a thumbnail of a number", photo(#""thumbnail_media_id":7"#), "malformed", "thumbnail_media_id"),
      ("video without duration", video(""), "malformed", "duration"),
      ("video of half a second", video(#","duration":0.5"#), "malformed", "duration"),
      ("video of 2^31 seconds", video(#","duration":2147483648"#), "malformed", "duration"),
      ("video of a negative duration", video(#","duration":-1"#), "malformed", "duration"),
      ("video of a height of nothing", video(#","duration":1,"height":0"#), "malformed", "height"),
    ]
  }

  private static var placeMembers: [Case] {
    func place(_ own: String) -> String { #"{"type":"location",\#(sender),\#(rest),\#(own)}"# }
    func custom(_ own: String) -> String { #"{"type":"custom",\#(sender),\#(rest)\#(own)}"# }
    let long = String(repeating: "a", count: 1_025)
    return [
      ("location without latitude", place(#""longitude":1"#), "malformed", "latitude"),
      ("location without longitude", place(#""latitude":1"#), "malformed", "longitude"),
      ("a latitude of text", place(#""latitude":"1","longitude":1"#), "malformed", "latitude"),
      ("a latitude beyond the pole", place(#""latitude":90.0001,"longitude":1"#), "malformed", "latitude"),
      ("a longitude beyond the date line", place(#""latitude":1,"longitude":-181"#), "malformed", "longitude"),
      ("an address of 1,025 bytes", place(#""latitude":1,"longitude":1,"address":"\#(long)""#), "too_long", "address"),
      ("a building of a number", place(#""latitude":1,"longitude":1,"building_name":1"#), "malformed", "building_name"),
      ("custom without event", custom(""), "malformed", "event"),
      ("custom of an empty event", custom(#","event":"""#), "malformed", "event"),
      ("an event of 129 bytes", custom(#","event":"\#(long.prefix(129))""#), "too_long", "event"),
      ("custom_ext of a list", custom(#","event":"e","custom_ext":[]"#), "malformed", "custom_ext"),
      ("custom_ext with a number", custom(#","event":"e","custom_ext":{"a":1}"#), "malformed", "custom_ext"),
      ("voice without duration", #"{"type":"voice",\#(sender),\#(rest),\#(file)}"#, "malformed", "duration"),
    ]
  }

  private static var combineMembers: [Case] {
    func combine(_ members: [(String, String)]) -> String {
      let own = members.map { #""\#($0)":\#($1)"# }.joined(separator: ",")
      return #"{"type":"combine",\#(sender),\#(rest),\#(own)}"#
    }
    let media = Facts.media.text
    let good = [
      ("title", #""t""#), ("summary", #""""#), ("compatible_text", #""c""#), ("media_id", #""\#(media)""#),
      ("size", "1"), ("levels", "1"),
    ]
    func with(_ name: String, _ value: String?) -> String {
      combine(good.compactMap { $0.0 == name ? value.map { (name, $0) } : $0 })
    }
    func long(_ count: Int) -> String { "\"" + String(repeating: "t", count: count) + "\"" }
    return good.map { ("combine without \($0.0)", with($0.0, nil), "malformed", $0.0) } + [
      ("combine of no title", with("title", #""""#), "malformed", "title"),
      ("a title of 257 bytes", with("title", long(257)), "too_long", "title"),
      ("a summary of 1,025 bytes", with("summary", long(1_025)), "too_long", "summary"),
      ("an empty compatible_text", with("compatible_text", #""""#), "malformed", "compatible_text"),
      ("a compatible_text of 1,025 bytes", with("compatible_text", long(1_025)), "too_long", "compatible_text"),
      ("combine of a short media_id", with("media_id", #""abc""#), "malformed", "media_id"),
      ("combine of 9,000,301 bytes", with("size", "9000301"), "too_long", "size"),
      ("combine of no levels", with("levels", "0"), "malformed", "levels"),
      ("combine of 11 levels", with("levels", "11"), "malformed", "levels"),
      ("combine of half a level", with("levels", "1.5"), "malformed", "levels"),
    ]
  }

  private static var options: [Case] {
    [
      ("ext of text", text(#","ext":"{}""#), "malformed", "ext"),
      ("ext of null", text(#","ext":null"#), "malformed", "ext"),
      ("reply_to of an ID alone", text(#","reply_to":"m-1""#), "malformed", "reply_to"),
      ("reply_to without sender_id", text(#","reply_to":{"message_id":"m"}"#), "malformed", "sender_id"),
      ("reply_to without message_id", text(#","reply_to":{"sender_id":"\#(id)"}"#), "malformed", "message_id"),
      (
        "reply_to a name", text(#","reply_to":{"sender_id":"Ana","message_id":"m"}"#), "malformed", "reply_to"
      ),
      (
        "reply_to an empty ID", text(#","reply_to":{"sender_id":"\#(id)","message_id":""}"#), "malformed", "reply_to"
      ),
    ]
  }

  private static func act(_ type: String, _ more: String) -> String {
    #"{\#(sender),\#(rest),"type":"\#(type)"\#(more)}"#
  }

  private static var acts: [Case] {
    let key = Facts.ben.peerID.text
    let long = String(repeating: "a", count: 4_097)
    return [
      ("joined without a grant", act("joined", ""), "malformed", "grant"),
      ("joined with a grant cut short", act("joined", #","grant":"aaaa""#), "malformed", "grant"),
      (
        "joined with a grant of 221 characters", act("joined", #","grant":"\#(long.prefix(221))""#), "too_long", "grant"
      ),
      ("an announcement without a body", act("announcement", ""), "malformed", "body"),
      (
        "an announcement of 2,049 bytes", act("announcement", #","body":"\#(long.prefix(2_049))""#), "too_long", "body"
      ), ("a close without an ID", #"{\#(sender),"type":"close"}"#, "malformed", "message_id"),
      ("generation 0", act("generation", #","number":0,"hash":"\#(key)""#), "malformed", "number"),
      ("generation 2^32", act("generation", #","number":4294967296,"hash":"\#(key)""#), "malformed", "number"),
      ("a generation of a short hash", act("generation", #","number":1,"hash":"abc""#), "malformed", "hash"),
      ("an empty token", act("token", #","token":"""#), "malformed", "token"),
      ("a token of 4,097 bytes", act("token", #","token":"\#(long)""#), "too_long", "token"),
      ("an organiser of a short key", act("organiser", #","key":"abc""#), "malformed", "key"),
      ("an organiser of a number", act("organiser", #","key":1"#), "malformed", "key"),
    ]
  }

  private static var roles: [Case] {
    func role(_ more: String) -> String { act("role", #","target":"\#(Facts.ben.peerID.text)""# + more) }
    func heads(_ heads: String) -> String { role(#","role":"muted","heads":\#(heads)"#) }
    let log = Facts.instance.description
    let many = (UInt64(0)..<257).map { #"["\#(Instance($0))",1]"# }.joined(separator: ",")
    return [
      ("a role of nobody", act("role", #","role":"muted","heads":[]"#), "malformed", "target"),
      ("a role that there is not", role(#","role":"king","heads":[]"#), "malformed", "role"),
      ("an admin until a time", role(#","role":"admin","until":1,"heads":[]"#), "malformed", "until"),
      ("muted until 2^62", role(#","role":"muted","until":4611686018427387904,"heads":[]"#), "malformed", "until"),
      ("a role without heads", role(#","role":"muted""#), "malformed", "heads"),
      ("heads of text", heads(#""all""#), "malformed", "heads"),
      ("a head of three", heads(#"[["\#(log)",1,2]]"#), "malformed", "heads"),
      ("a head of 0", heads(#"[["\#(log)",0]]"#), "malformed", "heads"),
      ("a log in capitals", heads(#"[["ABCDEF0123456789",1]]"#), "malformed", "heads"),
      ("a log of 15 digits", heads(#"[["012345678901234",1]]"#), "malformed", "heads"),
      ("a log of signs", heads(#"[["+123456789012345",1]]"#), "malformed", "heads"),
      ("a log twice", heads(#"[["\#(log)",1],["\#(log)",2]]"#), "malformed", "heads"),
      ("heads of 257 logs", heads("[\(many)]"), "too_many", "heads"),
      ("lower_hand without heads", act("lower_hand", #","target":"\#(Facts.ben.peerID.text)""#), "malformed", "heads"),
      ("lower_hand of nobody", act("lower_hand", #","heads":[]"#), "malformed", "target"),
    ]
  }

  private static var deeds: [Case] {
    let target = #"{"sender_id":"\#(id)","message_id":"m"}"#
    func deed(_ type: String, _ more: String) -> String { act(type, #","target":\#(target)\#(more)"#) }
    let many = (0..<65).map { #"{"sender_id":"\#(id)","message_id":"m\#($0)"}"# }.joined(separator: ",")
    return [
      ("a recall of nothing", act("recall", ""), "malformed", "target"),
      ("a recall of an ID alone", act("recall", #","target":"m""#), "malformed", "target"),
      (
        "a recall of a name", act("recall", #","target":{"sender_id":"Ana","message_id":"m"}"#), "malformed", "target"
      ),
      ("a recall without message_id", act("recall", #","target":{"sender_id":"\#(id)"}"#), "malformed", "message_id"),
      ("an edit of nothing", deed("edit", ""), "malformed", "body"),
      ("an edit to an empty body", deed("edit", #","body":"""#), "malformed", "body"),
      ("an edit to a number", deed("edit", #","body":1"#), "malformed", "body"),
      ("an edit of both", deed("edit", #","body":"b","event":"e""#), "malformed", "body"),
      ("an edit to an empty event", deed("edit", #","event":"""#), "malformed", "event"),
      ("an edit to an ext of text", deed("edit", #","body":"b","ext":"{}""#), "malformed", "ext"),
      ("a reaction without emoji", deed("react", #","on":true"#), "malformed", "emoji"),
      ("a reaction of an empty emoji", deed("react", #","emoji":"","on":true"#), "malformed", "emoji"),
      (
        "a reaction of 65 bytes", deed("react", #","emoji":"\#(String(repeating: "x", count: 65))","on":true"#),
        "too_long", "emoji"
      ), ("a reaction neither on nor off", deed("react", #","emoji":"x""#), "malformed", "on"),
      ("a pin of 1", deed("pin", #","on":1"#), "malformed", "on"),
      ("a read of nothing", act("read", ""), "malformed", "targets"),
      ("a read of none", act("read", #","targets":[]"#), "malformed", "targets"),
      ("a read of an ID", act("read", #","targets":["m"]"#), "malformed", "targets"),
      ("a read of one twice", act("read", #","targets":[\#(target),\#(target)]"#), "malformed", "targets"),
      ("a read of 65", act("read", #","targets":[\#(many)]"#), "too_many", "targets"),
    ]
  }
}
