import Parley

/// The commands about who is who.
extension CommandTable {
  static let token = Command(
    name: "token", arguments: [.init("key|issue|inspect"), .init("FILE", .optional)],
    options: [
      .init(name: "--key-file", value: "F", help: "issue: the organiser's private key"),
      .init(name: "--sub", value: "PEER", help: "issue: whose token it is, by full ID (parley id)"),
      .init(name: "--name", value: "NAME", help: "issue: how you call them; shown with a check mark"),
      .init(name: "--channel", value: "CHANNEL", help: "issue: the only channel it is for; else any"),
      .init(name: "--role", value: "ROLE", help: "issue: what they are, such as teacher"),
      .init(name: "--expires", value: "TIME", help: "issue: valid for so long, such as 30m, 8h or 7d; else 8h"),
      .init(name: "--organiser", value: "KEY", help: "inspect: check the signature with this public key"),
    ],
    summary: "make an organiser's key, issue login tokens, look at them",
    details: """
      An organiser makes a key once, gives its public half to all members, and issues a token to each
      person: a PASETO v4.public that says who they are, signed. A token is no secret, it is of use only to
      the one whose ID it names. key FILE makes the key; issue prints a token; inspect reads one from FILE
      or standard input.
      """,
    examples: [
      .init("parley token key ~/organiser.key", "once; prints the public key"),
      .init("parley token issue --key-file ~/organiser.key --sub ID --name Ana --expires 8h", "a token for Ana"),
      .init("parley token inspect ana.token --organiser KEY", "whose it is, and whether it is good"),
    ], run: TokenCommands.token)
}
