import Parley

/// What rooms, attributes and settings are asked by.
extension HTTPTests.RouteTests {
  static let roomCases: [Case] = [
    Case(
      method: "POST", target: "/v1/channels", body: #"{"name":"stage","type":"room","open":true}"#, status: 201,
      call: "join stage open as room", answer: #""open":true"#),
    Case(
      method: "POST", target: "/v1/owned-channels", body: #"{"name":"stage","type":"room"}"#, status: 201,
      call: "create stage as room", answer: #""type":"room""#),
    Case(
      method: "GET", target: "/v1/channels/team/attributes", status: 200, call: "attributes team",
      answer: #"[{"key":"seat 1","value":"Ben\u001b","sender_id":"\#(FakeNode.ben.text)","#),
    Case(
      method: "PUT", target: "/v1/channels/team/attributes",
      body: #"{"key":"seat 1","value":"Ana","overwrite":false,"until_leave":true}"#, status: 200,
      call: "attribute team seat 1=Ana false true", answer: #""key":"seat 1","value":"Ana""#),
    Case(
      method: "DELETE", target: "/v1/channels/team/attributes?key=a%2F..&overwrite=false", status: 200,
      call: "no attribute team a/.. false", answer: #""key":"a/..""#),
    Case(
      method: "POST", target: "/v1/broadcast", body: #"{"body":"hi"}"#, status: 201,
      call: #"broadcast {"type":"text","body":"hi"}"#, answer: #""code":"message_dropped""#),
    Case(
      method: "GET", target: "/v1/channels/team/settings", status: 200, call: "settings team",
      answer: #"{"muted":false,"own_messages":true,"receipts":true,"previews":true,"voice":true,"history_days":null"#),
    Case(
      method: "PUT", target: "/v1/channels/team/settings", body: #"{"previews":false}"#, status: 200,
      call: "settings team", answer: #""previews":false,"voice":true"#),
    Case(
      method: "PUT", target: "/v1/channels/team/settings", body: #"{"muted":true,"history_days":7}"#, status: 200,
      call: "settings team; set team true true true 7 0", answer: #""muted":true"#),
    Case(
      method: "PUT", target: "/v1/peers/Ben/settings", body: #"{"own_messages":false}"#, status: 200,
      call: "settings of Ben; set of Ben false false true", answer: #""own_messages":false"#),
    Case(
      method: "PUT", target: "/v1/channels/team/typing", body: #"{"typing":true}"#, status: 200,
      call: "typing team true", answer: #""typing":true"#),
  ]
}
