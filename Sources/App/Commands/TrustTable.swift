import Parley

/// The commands about who is who.
extension CommandTable {
  static let verify = Command(
    name: "verify", arguments: [.init("PEER")],
    options: [
      .init(name: "--confirm", help: "you have compared the digits with them: remember this key as theirs"),
      .init(name: "--scanned", value: "TEXT", help: "the QR text on their screen: compare it here, then remember"),
      .init(name: "--undo", help: "forget that they were verified"),
    ],
    summary: "make sure that somebody is who they say",
    details: """
      Shows 30 digits that are the same on both sides if each has the other's key, and a text for a QR code. Compare
      them by voice or face to face, not in the channel. After --confirm, whoever else appears under a name
      that looks like theirs is announced and marked.
      """,
    examples: [
      .init("parley verify Ben", "both do this, and read the digits to each other"),
      .init("parley verify Ben --confirm", "they were the same"),
    ], run: PeopleCommands.verify)

  static let block = Command(
    name: "block", arguments: [.init("PEER")], summary: "see and hear nothing of somebody, on this node only",
    details: """
      Their messages, hands, files and messages to you alone are shown nowhere, and nothing is downloaded
      from them. They are not told. What they say is kept, and is there again after parley unblock.
      """,
    examples: [.init("parley block k3vq", "by the start of their ID")], run: PeopleCommands.block)

  static let unblock = Command(
    name: "unblock", arguments: [.init("PEER")], summary: "end that",
    examples: [.init("parley unblock k3vq", "what they said meanwhile is shown again")], run: PeopleCommands.unblock)

  static let contacts = Command(
    name: "contacts", summary: "list whom you verified or blocked",
    examples: [.init("parley contacts", "names, IDs, and what you decided")], run: PeopleCommands.contacts)

  static let organiser = Command(
    name: "organiser", arguments: [.init("CHANNEL"), .init("KEY", .optional)],
    summary: "show or choose whose login tokens a channel asks for",
    details: """
      With KEY (from parley token key), what is said without a token of theirs is not shown here, from now
      on and looking back; names with a check mark are the organiser's word. none for KEY ends that. The
      owner of a channel says so for all its members; anybody else's choice is for this node alone.
      """,
    examples: [
      .init("parley organiser team", "whose?"), .init("parley organiser team KEY", "theirs"),
      .init("parley organiser team none", "nobody's"),
    ], run: TokenCommands.organiser)

  static let token = Command(
    name: "token", arguments: [.init("key|issue|inspect|use|show"), .init("FILE", .optional)],
    options: [
      .init(name: "--key-file", value: "F", help: "issue: the organiser's private key"),
      .init(name: "--sub", value: "PEER", help: "issue: whose token it is, by full ID (parley id)"),
      .init(name: "--name", value: "NAME", help: "issue: how you call them; shown with a check mark"),
      .init(name: "--channel", value: "CHANNEL", help: "issue: the only channel it is for; else any"),
      .init(name: "--role", value: "ROLE", help: "issue: what they are, such as teacher"),
      .init(name: "--expires", value: "TIME", help: "issue: valid for so long, such as 30m, 8h or 7d; else 8h"),
      .init(name: "--organiser", value: "KEY", help: "inspect: check the signature with this public key"),
    ],
    summary: "make an organiser's key, issue login tokens, look at them, log in",
    details: """
      An organiser makes a key once, gives its public half to all members, and issues a token to each
      person: a PASETO v4.public that says who they are, signed. A token is no secret, it is of use only to
      the one whose ID it names. key FILE makes the key; issue prints a token; inspect reads one from FILE
      or standard input. use logs your running node in with the one in FILE, in the place of an earlier one
      and without an interruption; show prints the one in use.
      """,
    examples: [
      .init("parley token key ~/org.key", "once; prints the public key"),
      .init("parley token issue --key-file ~/org.key --sub ID --name Ana --expires 8h", "a token for Ana"),
      .init("parley token inspect ana.token --organiser KEY", "is it good?"),
      .init("parley token use ana.token", "log in"),
    ], run: TokenCommands.token)
}
