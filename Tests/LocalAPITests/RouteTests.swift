import Glibc
import Parley
import ParleyLocalAPI
import Testing

extension HTTPTests.RouteTests {
  static let id = FakeNode.mediaID.text
  static let ben = FakeNode.ben.text

  struct Case: Sendable, CustomTestStringConvertible {
    let method: String
    let target: String
    var body: String?
    let status: Int
    /// What the node was asked.
    let call: String?
    /// A part of the answer.
    let answer: String
    var testDescription: String { "\(method) \(target)" }
  }

  static let cases: [Case] = [
    Case(method: "GET", target: "/v1/status", status: 200, call: nil, answer: #""nodes_heard":3"#),
    Case(method: "GET", target: "/v1/id", status: 200, call: nil, answer: #""peer_id":"\#(FakeNode.ana.text)""#),
    Case(
      method: "GET", target: "/v1/channels", status: 200, call: nil,
      answer: #"[{"name":"team","open":true,"online":1,"members":2,"type":"group","dropped":0}]"#),
    Case(
      method: "POST", target: "/v1/channels", body: #"{"name":"team","open":true}"#, status: 201,
      call: "join team open", answer: #""nodes_heard_elsewhere":3"#),
    Case(
      method: "POST", target: "/v1/channels", body: #"{"name":"team","passphrase":"söcret"}"#, status: 201,
      call: "join team passphrase söcret", answer: #""open":false"#),
    Case(
      method: "POST", target: "/v1/channels",
      body: #"{"name":"team","open":true,"organiser":"\#(FakeNode.organiser)"}"#, status: 201,
      call: "join team open \(FakeNode.organiser)", answer: #""open":true"#),
    Case(
      method: "GET", target: "/v1/channels/team/organiser", status: 200, call: "organiser team",
      answer: #"{"channel":"team","organiser":"\#(FakeNode.organiser)""#),
    Case(
      method: "PUT", target: "/v1/channels/team/organiser", body: #"{"organiser":null}"#, status: 200,
      call: "set organiser team -", answer: #""channel":"team""#),
    Case(method: "GET", target: "/v1/token", status: 200, call: nil, answer: #"{"token":null}"#),
    Case(
      method: "POST", target: "/v1/owned-channels", body: #"{"name":"team"}"#, status: 201, call: "create team",
      answer: #""name":"team","type":"group","owner":"\#(FakeNode.ana.text)""#),
    Case(
      method: "POST", target: "/v1/channels/team/invitations",
      body: #"{"role":"admin","expires_after":60,"uses":30}"#, status: 201, call: "invite team admin 60 30",
      answer: #""link":"parley://join/team#abc","role":"admin","expires":1700000000000,"uses":null"#),
    Case(
      method: "POST", target: "/v1/invitations", body: #"{"link":"parley://join/team#abc"}"#, status: 201,
      call: "join by parley://join/team#abc", answer: #""name":"team","open":false"#),
    Case(
      method: "POST", target: "/v1/channels/team/keys", status: 200, call: "rotate team",
      answer: #"{"channel":"team","generation":7}"#),
    Case(
      method: "DELETE", target: "/v1/channels/team", status: 200, call: "leave team", answer: #"{"channel":"team"}"#),
    Case(
      method: "GET", target: "/v1/channels/a%2Fb%20%C3%A9%25/members", status: 200, call: "members a/b é%",
      answer: #""display_name":"Ben\u001b[2J""#),
    Case(
      method: "GET", target: "/v1/channels/team/messages?limit=3", status: 200, call: "history team 3",
      answer: #""type":"text","body":"hello","cursor":7,"channel":"team","delivered_to":[]"#),
    Case(
      method: "PUT", target: "/v1/channels/team/members/Ben%20B/role", body: #"{"role":"admin"}"#, status: 200,
      call: "role team Ben B admin", answer: #"{"channel":"team","peer_id":"\#(FakeNode.ben.text)"}"#),
    Case(
      method: "PUT", target: "/v1/channels/team/members/Ben/role", body: #"{"role":"muted","seconds":600}"#,
      status: 200, call: "role team Ben mutedFor(seconds: 600)", answer: "peer_id"),
    Case(
      method: "DELETE", target: "/v1/channels/team/members/Ben/mute", status: 200, call: "unmute team Ben",
      answer: "peer_id"),
    Case(
      method: "DELETE", target: "/v1/channels/team/members/Ben/ban", status: 200, call: "unban team Ben",
      answer: "peer_id"),
    Case(
      method: "DELETE", target: "/v1/channels/team/members/Ben/hand", status: 200, call: "lower team Ben",
      answer: "peer_id"),
    Case(
      method: "PUT", target: "/v1/channels/team/announcement", body: #"{"body":"At 9"}"#, status: 200,
      call: "announce team At 9", answer: #""body":"At 9\u001b","author""#),
    Case(
      method: "GET", target: "/v1/channels/team/messages/\(ben)/m7", status: 200, call: nil,
      answer: #""body":"hello""#),
    Case(
      method: "PUT", target: "/v1/channels/team/messages/\(ben)/m%2F7", body: #"{"body":"b","ext":{"a":1}}"#,
      status: 200, call: #"edit team m/7 {"body":"b","ext":{"a":1}}"#, answer: "hello"),
    Case(
      method: "PUT", target: "/v1/channels/team/messages/\(ben)/m7", body: #"{"event":"e","custom_ext":{"a":"b"}}"#,
      status: 200, call: #"edit team m7 {"event":"e","custom_ext":{"a":"b"}}"#, answer: "hello"),
    Case(
      method: "POST", target: "/v1/channels/team/messages/\(ben)/m7/recall", status: 200, call: "recall team m7",
      answer: "hello"),
    Case(
      method: "PUT", target: "/v1/channels/team/messages/\(ben)/m7/reaction", body: #"{"emoji":"👍","on":false}"#,
      status: 200, call: "react team m7 👍 false", answer: "hello"),
    Case(
      method: "PUT", target: "/v1/channels/team/messages/\(ben)/m7/pin", body: "{}", status: 200,
      call: "pin team m7 true", answer: "hello"),
    Case(method: "GET", target: "/v1/channels/team/pins", status: 200, call: "pins team", answer: #""body":"pinned""#),
    Case(
      method: "POST", target: "/v1/channels/team/read",
      body: #"{"messages":[{"sender_id":"\#(ben)","message_id":"m7"}]}"#, status: 200, call: #"read team ["m7"]"#,
      answer: "team"),
    Case(method: "POST", target: "/v1/channels/team/close", status: 200, call: "close team", answer: "team"),
    Case(method: "GET", target: "/v1/channels/team/messages", status: 200, call: "history team 50", answer: "hello"),
    Case(
      method: "GET", target: "/v1/search?text=%E5%BC%80%E4%BC%9A%20%22c%2B%2B%22", status: 200,
      call: #"search - 50 开会 "c++""#, answer: #""body":"found","cursor":8,"channel":null"#),
    Case(
      method: "GET", target: "/v1/search?text=a&channel=te%20am&limit=1000", status: 200, call: "search te am 1000 a",
      answer: #""channel":"te am""#),
    Case(
      method: "POST", target: "/v1/channels/team/messages", body: #"{"body":"hi","wait":2.5}"#, status: 201,
      call: #"send team {"type":"text","body":"hi"} 2.5"#,
      answer: #"{"message_id":"m1","delivered_to":["\#(FakeNode.ben.text)"],"present":1}"#),
    Case(
      method: "POST", target: "/v1/channels/team/messages",
      body: #"{"type":"location","latitude":52,"longitude":-1.5,"address":"Main St","ext":{"b":[1],"a":null}}"#,
      status: 201,
      call: #"send team {"type":"location","latitude":52.0,"longitude":-1.5,"address":"Main St","#
        + #""ext":{"b":[1],"a":null}} -"#, answer: #""message_id":"m1""#),
    Case(
      method: "POST", target: "/v1/peers/Ben/messages",
      body:
        #"{"type":"custom","event":"seat","custom_ext":{"row":"3","a":""},"#
        + #""reply_to":{"sender_id":"\#(FakeNode.ben.text)","message_id":"m9"}}"#, status: 202,
      call: #"tell Ben {"type":"custom","event":"seat","custom_ext":{"row":"3","a":""},"#
        + #""reply_to":{"sender_id":"\#(FakeNode.ben.text)","message_id":"m9"}}"#, answer: #""outcome":"queued""#),
    Case(
      method: "POST", target: "/v1/channels/team/messages",
      body: #"{"body":"hi","to":["Ben","k3vq"],"online_only":true,"priority":"high","needs_receipt":true,"#
        + #""webhook_env":"stage","target_languages":["de"],"broadcast":false}"#, status: 201,
      call: #"send team {"type":"text","body":"hi","needs_receipt":true,"priority":"high","webhook_env":"stage","#
        + #""target_languages":["de"],"online_only":true,"receivers":["Ben","k3vq"]} -"#, answer: "message_id"),
    Case(
      method: "POST", target: "/v1/channels/team/messages",
      body: #"{"type":"cmd","action":"refresh","params":{"page":"2"}}"#, status: 201,
      call: #"send team {"type":"cmd","action":"refresh","params":{"page":"2"}} -"#, answer: "message_id"),
    Case(
      method: "POST", target: "/v1/peers/Ben/messages",
      body: #"{"type":"video","remote_url":"https://media.example/a","file_name":"a.mp4","size":5,"duration":61}"#,
      status: 202,
      call:
        #"tell Ben {"type":"video","remote_url":"https://media.example/a","file_name":"a.mp4","size":5,"duration":61}"#,
      answer: #""outcome":"queued""#),
    Case(
      method: "PUT", target: "/v1/channels/team/hand", body: #"{"raised":true}"#, status: 200, call: "hand team true",
      answer: #""raise_hand":true"#),
    Case(
      method: "GET", target: "/v1/peers/Ben/verification", status: 200, call: "verification Ben",
      answer: #""code":"00001 00002 00003 00004 00005 00006","qr":"parley://verify/a/b","verified":true"#),
    Case(
      method: "POST", target: "/v1/peers/Ben/verification", body: "{}", status: 201, call: "verify Ben -",
      answer: #""verified":true"#),
    Case(
      method: "POST", target: "/v1/peers/Ben/verification", body: #"{"scanned":"x"}"#, status: 201,
      call: "verify Ben x", answer: #""verified":true"#),
    Case(
      method: "DELETE", target: "/v1/peers/Ben/verification", status: 200, call: "unverify Ben",
      answer: #""display_name":"Ben""#),
    Case(
      method: "PUT", target: "/v1/peers/Ben/block", body: #"{"blocked":true}"#, status: 200, call: "block Ben",
      answer: #""verified_at":null,"blocked":true"#),
    Case(
      method: "PUT", target: "/v1/peers/Ben/block", body: #"{"blocked":false}"#, status: 200, call: "unblock Ben",
      answer: #""blocked":false"#),
    Case(
      method: "GET", target: "/v1/contacts", status: 200, call: "contacts",
      answer: #""verified_at":"1970-01-01T00:00:00Z","blocked":false"#),
    Case(
      method: "GET", target: "/v1/channels/team/media", status: 200, call: "media team",
      answer: #""file_name":"plan.pdf","size":42,"mime_type":null,"type":"file""#),
    Case(
      method: "POST", target: "/v1/channels/team/media", body: #"{"path":"/tmp/x","as":"photo"}"#, status: 201,
      call: "share /tmp/x photo team", answer: #""media_id":"\#(id)""#),
    Case(
      method: "POST", target: "/v1/channels/team/media", body: #"{"path":"/tmp/x","original":true}"#, status: 201,
      call: "share /tmp/x original_photo team", answer: #""notes":[]"#),
    Case(
      method: "GET", target: "/v1/media/\(id)", status: 200, call: "contents \(id)",
      answer: #""files":[{"path":"a/b","size":3,"executable":true}]"#),
    Case(
      method: "POST", target: "/v1/channels/team/media",
      body: #"{"path":"/tmp/x","as":"voice","duration":7,"ext":{"a":1}}"#, status: 201,
      call: #"share /tmp/x voice team 7 s {"a":1}"#, answer: #""media_id":"\#(id)""#),
    Case(
      method: "POST", target: "/v1/channels/team/media",
      body: #"{"path":"/tmp/x","as":"video","thumbnail":"/tmp/y"}"#, status: 201,
      call: "share /tmp/x video team /tmp/y",
      answer: #""media_id":"\#(id)""#),
    Case(
      method: "POST", target: "/v1/channels/team/forwards", body: #"{"messages":["m1"],"to":"lobby"}"#, status: 201,
      call: "references team m1; forward team ben/m1 channel(lobby)", answer: #""message_ids":["m3"]"#),
    Case(
      method: "POST", target: "/v1/channels/team/forwards",
      body: #"{"messages":[{"sender_id":"\#(FakeNode.ana.text)","message_id":"m1"},"m2"],"to_peer":"Ben"}"#,
      status: 201,
      call: #"references team m2; forward team ana/m1 ben/m2 peer("Ben")"#, answer: #""message_ids":["m3"]"#),
    Case(
      method: "POST", target: "/v1/channels/team/combined",
      body: #"{"messages":["m1","m2"],"title":"Friday","summary":"s","to":"lobby"}"#, status: 201,
      call: "references team m1 m2; combine team ben/m1 ben/m2 lobby Friday|s|[Friday]", answer: #""message_id":"m4""#),
    Case(
      method: "GET", target: "/v1/media/\(id)/messages", status: 200, call: "unpack \(id)", answer: #""body":"hi""#),
    Case(method: "DELETE", target: "/v1/media/\(id)", status: 200, call: "unshare \(id)", answer: id),
    Case(method: "GET", target: "/v1/downloads", status: 200, call: "downloads", answer: "[]"),
    Case(
      method: "POST", target: "/v1/downloads/7/pause", status: 200, call: "pause 7", answer: #""download_id":7"#),
    Case(
      method: "POST", target: "/v1/downloads/7/resume", status: 200, call: "resume 7", answer: #""download_id":7"#),
    Case(
      method: "DELETE", target: "/v1/downloads/7", status: 200, call: "cancel 7 false", answer: #""download_id":7"#),
    Case(
      method: "DELETE", target: "/v1/downloads/7?keep_part=true", status: 200, call: "cancel 7 true",
      answer: #""download_id":7"#),
    Case(
      method: "GET", target: "/v1/channels/team/messages?limit=3&before=1792", status: 200,
      call: "history team before 1792 3", answer: "hello"),
    Case(
      method: "GET", target: "/v1/peers/Ben%20B/messages?before=5", status: 200,
      call: "messages with Ben B before 5 50", answer: #""body":"psst""#),
    Case(method: "GET", target: "/v1/page", status: 200, call: nil, answer: #"{"address":null}"#),
    Case(
      method: "POST", target: "/v1/peers/Ben%20B/messages", body: #"{"body":"psst"}"#, status: 202,
      call: #"tell Ben B {"type":"text","body":"psst"}"#, answer: #""outcome":"queued""#),
  ]

  @Test(arguments: cases + roomCases) func eachAddressAsksTheNode(_ test: Case) async throws {
    try await withServer { server, node in
      let response = try #require(TestClient(server.socketPath).call(test.method, test.target, body: test.body))
      let text = String(decoding: response.body, as: UTF8.self)
      #expect(response.status == test.status, "\(text)")
      #expect(response.headers["content-type"] == "application/json")
      #expect(text.contains(test.answer), "\(text)")
      // An address may ask for more than one thing.
      if let call = test.call { #expect((node.calls.joined(separator: "; ") + ";").hasPrefix(call + ";")) }
    }
  }

  @Test(arguments: [
    ("GET", "/", nil, 404, "no_route"), ("GET", "/v2/status", nil, 404, "no_route"),
    ("GET", "/v1/channels/a/b/members", nil, 404, "no_route"), ("GET", "/v1/status/", nil, 404, "no_route"),
    ("POST", "/v1/status", "{}", 405, "wrong_method"), ("PATCH", "/v1/channels/team", "{}", 405, "wrong_method"),
    ("POST", "/v1/channels/team/media", #"{"path":"/x","as":"voice","duration":1.5}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/media", #"{"path":"/x","as":"music"}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/forwards", #"{"messages":["m1"]}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/forwards", #"{"messages":[""],"to":"lobby"}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/combined", #"{"messages":["m1"],"title":""}"#, 400, "bad_field"),
    ("POST", "/v1/channels", "{", 400, "bad_request"), ("POST", "/v1/channels", "[]", 400, "bad_request"),
    ("POST", "/v1/channels", #"{"name":"a"}"#, 400, "bad_request"),
    ("POST", "/v1/channels", #"{"name":"a","open":true,"passphrase":"x"}"#, 400, "bad_request"),
    ("POST", "/v1/channels", #"{"name":"a","passphrase":""}"#, 400, "bad_request"),
    ("POST", "/v1/channels", #"{"name":"a","opne":true}"#, 400, "bad_request"),
    ("POST", "/v1/channels", #"{"name":"a","name":"b","open":true}"#, 400, "bad_request"),
    ("POST", "/v1/channels", #"{"name":"\u001b[2J","open":true}"#, 400, "bad_name"),
    ("GET", "/v1/channels/%FF/members", nil, 400, "bad_request"),
    ("GET", "/v1/channels/a%00b/members", nil, 400, "bad_request"),
    ("GET", "/v1/channels/a%2/members", nil, 400, "bad_request"),
    ("GET", "/v1/channels/team/messages?limit=0", nil, 400, "bad_request"),
    ("GET", "/v1/channels/team/messages?limit=x", nil, 400, "bad_request"),
    ("GET", "/v1/channels/team/messages?before=x", nil, 400, "bad_request"),
    ("POST", "/v1/downloads", #"{"media_id":"\#(id)","detached":true}"#, 400, "bad_request"),
    ("GET", "/v1/search", nil, 400, "bad_request"), ("GET", "/v1/search?text=a&limit=1001", nil, 400, "bad_request"),
    ("GET", "/v1/search?text=%FF", nil, 400, "bad_request"),
    ("GET", "/v1/search?text=a&channel=", nil, 400, "bad_name"), ("POST", "/v1/search", "{}", 405, "wrong_method"),
    ("POST", "/v1/channels/team/messages", #"{"body":1}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/messages", #"{"body":"a","wait":-1}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/messages", "{}", 400, "bad_request"),
    ("POST", "/v1/channels/team/messages", #"{"body":""}"#, 400, "empty_message"),
    ("POST", "/v1/channels/team/messages", #"{"type":"photo","body":"a"}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/messages", #"{"body":"a","latitude":1}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/messages", #"{"type":"location","latitude":1}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/messages", #"{"type":"location","latitude":91,"longitude":1}"#, 400, "bad_field"),
    ("POST", "/v1/channels/team/messages", #"{"type":"custom","event":""}"#, 400, "bad_field"),
    ("POST", "/v1/channels/team/messages", #"{"type":"cmd","action":"em_x"}"#, 400, "bad_field"),
    ("POST", "/v1/channels/team/messages", #"{"body":"a","webhook_env":"abcdefghi"}"#, 400, "bad_field"),
    ("POST", "/v1/channels/team/messages", #"{"body":"a","target_languages":["d"]}"#, 400, "bad_field"),
    ("POST", "/v1/channels/team/messages", #"{"body":"a","priority":"highest"}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/messages", #"{"body":"a","params":{}}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/messages", #"{"type":"photo","file_name":"a"}"#, 400, "bad_request"),
    ("POST", "/v1/peers/Ben/messages", #"{"body":"a","to":["Ben"]}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/messages", #"{"type":"custom","event":"e","custom_ext":{"a":1}}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/messages", #"{"body":"a","ext":[]}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/messages", #"{"body":"a","reply_to":{"message_id":"m"}}"#, 400, "bad_request"),
    ("PUT", "/v1/channels/team/hand", #"{"raised":"yes"}"#, 400, "bad_request"),
    ("PUT", "/v1/channels/team/typing", "{}", 400, "bad_request"),
    ("PUT", "/v1/channels/team/settings", #"{"muted":"on"}"#, 400, "bad_request"),
    ("PUT", "/v1/channels/team/settings", #"{"history_days":0}"#, 400, "bad_request"),
    ("PUT", "/v1/peers/Ben/settings", #"{"history_days":1}"#, 400, "bad_request"),
    ("POST", "/v1/channels", #"{"name":"stage","type":"hall","open":true}"#, 400, "bad_request"),
    ("PUT", "/v1/channels/team/attributes", #"{"key":"seat 1"}"#, 400, "bad_request"),
    ("DELETE", "/v1/channels/team/attributes", nil, 400, "bad_request"),
    ("DELETE", "/v1/channels/team/attributes?key=a&overwrite=perhaps", nil, 400, "bad_request"),
    ("GET", "/v1/channels/team/messages/\(ben)/none", nil, 404, "no_such_message"),
    ("GET", "/v1/channels/team/messages/Ben/m7", nil, 400, "bad_request"),
    ("PUT", "/v1/channels/team/messages/\(ben)/m7", "{}", 400, "empty_message"),
    ("PUT", "/v1/channels/team/messages/\(ben)/m7", #"{"body":"a","event":"e"}"#, 400, "bad_request"),
    ("PUT", "/v1/channels/team/messages/\(ben)/m7", #"{"ext":[]}"#, 400, "bad_request"),
    ("PUT", "/v1/channels/team/messages/\(ben)/m7/reaction", #"{"on":true}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/read", #"{"messages":["m7"]}"#, 400, "bad_request"),
    ("PUT", "/v1/token", #"{"token":"v4.public.AAAA"}"#, 403, "bad_token"),
    ("PUT", "/v1/channels/team/organiser", #"{"organiser":"short"}"#, 400, "bad_request"),
    ("PUT", "/v1/channels/team/members/Ben/role", #"{"role":"king"}"#, 400, "bad_request"),
    ("PUT", "/v1/channels/team/members/Ben/role", #"{"role":"admin","seconds":5}"#, 400, "bad_request"),
    ("PUT", "/v1/channels/team/members/Ben/role", #"{"role":"muted","until":"noon"}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/media", #"{"path":"relative"}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/media", #"{"path":"/a\u0000b"}"#, 400, "bad_request"),
    ("POST", "/v1/channels/team/media", #"{"path":"/a","as":"song"}"#, 400, "bad_request"),
    ("DELETE", "/v1/media/short", nil, 400, "bad_media_id"),
    ("GET", "/v1/media/short", nil, 400, "bad_media_id"),
    ("DELETE", "/v1/downloads/seven", nil, 400, "bad_request"),
    ("DELETE", "/v1/downloads/7?keep_part=maybe", nil, 400, "bad_request"),
    ("POST", "/v1/downloads/-1/pause", nil, 400, "bad_request"),
    ("POST", "/v1/downloads", #"{"media_id":"\#(id)"}"#, 400, "bad_request"),
    ("POST", "/v1/downloads", #"{"media_id":"\#(id)","folder":"/","only":"a"}"#, 400, "bad_request"),
    ("POST", "/v1/downloads", #"{"media_id":"\#(id)","folder":"/","only":[1]}"#, 400, "bad_request"),
  ])
  func whatIsWrongIsSaidSo(_ method: String, _ target: String, _ body: String?, _ status: Int, _ code: String)
    async throws
  {
    try await withServer { server, node in
      let response = try #require(TestClient(server.socketPath).call(method, target, body: body))
      #expect(response.status == status)
      #expect(response.headers["content-type"] == "application/problem+json")
      #expect(response.json?["code"]?.string == code)
      #expect(response.json?["status"]?.integer == Int64(status))
      #expect(response.json?["detail"]?.string?.isEmpty == false)
      #expect(node.calls.isEmpty)
      if status == 405 { #expect(response.headers["allow"]?.isEmpty == false) }
    }
  }

  @Test(arguments: [
    (ParleyError.notInChannel(try! ChannelName("team")), 404, "not_in_channel"),
    (.otherSecret(try! ChannelName("team")), 409, "other_secret"),
    (.messageTooLong(byteCount: 30_001, byteCountMax: 30_000), 413, "message_too_long"),
    (.searchTooLong(byteCount: 1_025, byteCountMax: 1_024), 413, "search_too_long"),
    (.queueFull("too much"), 503, "queue_full"),
    (.noSpace(path: "/x", needByteCount: 2, haveByteCount: 1), 507, "no_space"),
  ])
  func whatTheNodeRefusesIsAProblem(_ error: ParleyError, _ status: Int, _ code: String) async throws {
    try await withServer { server, node in
      node.fail(with: error)
      let response = TestClient(server.socketPath).call("POST", "/v1/channels/team/messages", body: #"{"body":"x"}"#)
      #expect(response?.status == status)
      #expect(response?.json?["code"]?.string == code)
      #expect(response?.json?["detail"]?.string == error.description)
    }
  }

  @Test func anAmbiguousNameListsItsCandidates() async throws {
    try await withServer { server, node in
      let candidates = [FakeNode.ana, FakeNode.ben].map { PeerSummary(peer: $0, displayName: "Max", isOnline: true) }
      node.fail(with: .ambiguousPeer("Max", candidates: candidates))
      let response = TestClient(server.socketPath).call("POST", "/v1/peers/Max/messages", body: #"{"body":"x"}"#)
      let listed = response?.json?["candidates"]?.array?.map { $0["fingerprint"]?.string }
      #expect(listed == [FakeNode.ana.fingerprint, FakeNode.ben.fingerprint])
    }
  }

  @Test func oneConnectionServesManyRequests() async throws {
    try await withServer { server, _ in
      let client = TestClient(server.socketPath)
      for _ in 0..<100 { #expect(client.call("GET", "/v1/id")?.status == 200) }
    }
  }

  @Test func aBodyOfAMebibyteIsTakenAndOneByteMoreRefused() async throws {
    try await withServer { server, node in
      let frame = #"{"body":""}"#
      let filling = String(repeating: "x", count: LocalServer.bodyByteCountMax - frame.utf8.count)
      let fits = TestClient(server.socketPath).call(
        "POST", "/v1/channels/team/messages", body: "{\"body\":\"\(filling)\"}")
      #expect(fits?.status == 201)
      let client = TestClient(server.socketPath)
      client.write(
        Array("POST /v1/channels/team/messages HTTP/1.1\r\nHost: p\r\nContent-Length: 1048577\r\n\r\n".utf8))
      #expect(client.response()?.json?["code"]?.string == "body_too_large")
      let claim = TestClient(server.socketPath)
      claim.write(
        Array("POST /v1/channels/team/messages HTTP/1.1\r\nHost: p\r\nContent-Length: 99999999999999\r\n\r\n".utf8))
      #expect(claim.response()?.status == 413)
      #expect(node.calls.count == 1)
    }
  }

  @Test func aChunkedBodyWithoutEndIsCutOff() async throws {
    try await withServer { server, node in
      let client = TestClient(server.socketPath)
      client.write(
        Array("POST /v1/channels/team/messages HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: chunked\r\n\r\n".utf8))
      let chunk = Array("10000\r\n".utf8) + [UInt8](repeating: 0x20, count: 65_536) + Array("\r\n".utf8)
      var sentCount = 0
      while sentCount < 1_000, client.write(chunk) { sentCount += 1 }
      #expect(sentCount < 1_000)
      #expect(client.isClosedByPeer())
      #expect(node.calls.isEmpty)
      #expect(TestClient(server.socketPath).call("GET", "/v1/id")?.status == 200)
    }
  }

  @Test func noiseDoesNotEndTheService() async throws {
    try await withServer { server, _ in
      for _ in 0..<50 {
        let client = TestClient(server.socketPath)
        client.write((0..<200).map { _ in UInt8.random(in: 0...255) } + Array("\r\n\r\n".utf8))
      }
      #expect(TestClient(server.socketPath).call("GET", "/v1/id")?.status == 200)
    }
  }

  @Test func theSocketIsForThisUserOnly() async throws {
    try await withServer { server, _ in
      var info = stat()
      #expect(lstat(server.socketPath, &info) == 0)
      #expect(info.st_mode & 0o777 == 0o600)
    }
  }

  @Test func aSocketThatAnswersIsLeftAloneAndAStaleOneReplaced() async throws {
    try await withServer { server, _ in
      let home = String(server.socketPath.dropLast("/api.sock".count))
      #expect(throws: LocalAPIError.inUse(path: server.socketPath)) {
        try LocalServer(node: FakeNode(), home: home)
      }
      #expect(TestClient(server.socketPath).call("GET", "/v1/id")?.status == 200)
    }
    var template = Array("/tmp/parley-test-XXXXXX".utf8CString)
    let home = String(cString: mkdtemp(&template)!)
    defer { rmdir(home) }
    let stale = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: "\(home)/api.sock".utf8) }
    withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        #expect(bind(stale, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0)
      }
    }
    close(stale)
    let server = try LocalServer(node: FakeNode(), home: home)
    server.stop()
  }

  @Test func aHomeWithALongPathWorks() async throws {
    var template = Array("/tmp/parley-test-XXXXXX".utf8CString)
    let top = String(cString: mkdtemp(&template)!)
    let home = top + "/" + String(repeating: "h", count: 200)
    mkdir(home, 0o700)
    defer {
      rmdir(home)
      rmdir(top)
    }
    let server = try LocalServer(node: FakeNode(), home: home)
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await server.run() }
      SocketFile.withShortPath(inHome: home) { path in
        #expect(path.utf8.count < 108)
        #expect(TestClient(path).call("GET", "/v1/id")?.status == 200)
      }
      server.stop()
    }
  }
}
