/// All commands: parsing, help and completion come from here.
enum CommandTable {
  static let sections: [(title: String, commands: [Command])] = [
    ("Talk", [chat, send, tell, broadcast, hand, forward, combine, unpack, history, search, watch]),
    ("Messages", [reply, edit, recall, react, pin, read, receipts]),
    ("Channels", [create, invite, join, leave, channels, members, attributes, settings, rotate]),
    ("Roles", [role, admin, mute, unmute, remove, ban, unban, transfer, lower, announce, close]),
    ("Files", [share, unshare, media, files, download, downloads]),
    ("The node", [up, page, down, status, doctor, id, passphrase, identity, completion, manual]),
    ("Trust", [verify, block, unblock, contacts, organiser, token]),
  ]
  static let all = sections.flatMap(\.commands)

  // MARK: The node

  static let up = Command(
    name: "up",
    options: [
      .init(name: "--name", value: "NAME", help: "how others see you; else the name of last time, or your login name"),
      .init(
        name: "--interface", value: "IF", isRepeatable: true, help: "a network interface to use; else all that fit"),
      .init(
        name: "--peer", value: "HOST:PORT", isRepeatable: true,
        help: "a node to call that the network does not announce"
      ),
      .init(
        name: "--token-file", value: "F",
        help: "log in with the token in F, read again when it ends; else with that of last time"),
      .init(
        name: "--passphrase-file", value: "F",
        help: "read the home's passphrase from F; - for standard input. Else it is asked for"),
      .init(name: "--port", value: "N", help: "TCP port for other nodes; else one the system chooses"),
      .init(
        name: "--page", value: "PORT",
        help: "serve the page for this machine's browsers there, or off; else where it was last time"),
      .init(
        name: "--downloads", value: "DIR", help: "where files go that are downloaded from the page; else ~/Downloads"),
      .init(name: "--history-days", value: "D", help: "keep what was received in the last D days; else 30"),
      .init(name: "--history-entries", value: "N", help: "keep the last N entries of each channel; else 100000"),
      .init(name: "--outbox-seconds", value: "S", help: "give up messages that waited S seconds; else 604800, 7 days"),
      .init(name: "--hooks", value: "F", help: "ask the hooks in F, a JSON file, before or after what you send"),
      .init(
        name: "--message-rate", value: "N", help: "send N messages a second at most; else as many as you like"),
      .init(
        name: "--rotate-every", value: "TIME", help: "new secrets for channels of yours so often, such as 30d"),
      .init(name: "--upload-limit", value: "RATE", help: "send files at so many bytes a second, such as 5M"),
      .init(name: "--download-limit", value: "RATE", help: "fetch files at so many bytes a second, such as 20M"),
      .init(
        name: "--parts-limit", value: "SIZE",
        help: "disk space for parts of downloads that wait; the one used longest ago goes first"),
      .init(name: "--preview-quality", value: "Q", help: "JPEG quality of previews in hundredths, 1 to 100; else 60"),
      .init(name: "--thumbnail-side", value: "N", help: "dots of a thumbnail's short side at most; else 170"),
      .init(name: "--big-side", value: "N", help: "dots of a big picture's short side at most; else 720"),
      .init(name: "--no-thumbnails", help: "fetch previews only when they are looked at"),
      .init(name: "--no-voice", help: "fetch voice only when it is asked for"),
      .init(name: "--pictures-kept", value: "MB", help: "keep previews of MB million bytes at most; else 1073"),
    ],
    summary: "run your node in the foreground, until Ctrl-C or parley down",
    details: "Prints one line when it is ready, and joins again the channels of last time.",
    examples: [
      .init("parley up", "run it here"),
      .init("parley up --name Ana", "be seen as Ana"),
      .init("parley up --interface lo", "only on this machine: for trying things out"),
      .init("parley up --passphrase-file ~/home.txt", "a home with a passphrase, from a script"),
    ], run: NodeCommands.up)

  static let page = Command(
    name: "page",
    options: [.init(name: "--open", help: "open it in a browser; without it the address is printed")],
    summary: "show the address of the page, for a browser on this machine",
    details: """
      The address lets in whoever has it, as long as they use this machine: do not pass it on.
      """,
    examples: [.init("parley page", "print it"), .init("parley page --open", "open it in a browser")],
    run: PageCommands.page)

  static let down = Command(
    name: "down", summary: "end your node properly: others see you leave at once",
    examples: [.init("parley down", "end it")], run: NodeCommands.down)

  static let status = Command(
    name: "status", summary: "show what your node does: network, channels, people heard",
    examples: [
      .init("parley status", "for reading"), .init("parley status --json", "for scripts"),
    ], run: NodeCommands.status)

  static let doctor = Command(
    name: "doctor", summary: "find out why nobody is heard: network, firewall, clock, disk",
    details: """
      Says of each interface what was sent, what of it came back, and who was heard, then what
      that means and what to try. Asks the running node; sends nothing itself. The exit status
      is 0 when all is well, and 1 when something is a problem.
      """,
    examples: [.init("parley doctor", "for reading"), .init("parley doctor --json", "for scripts")],
    run: DoctorCommand.doctor)

  static let completion = Command(
    name: "completion", arguments: [.init("SHELL", .optional)],
    options: [
      .init(name: "--channels", help: "list the channels you are in, for the scripts"),
      .init(name: "--peers", help: "list the people there, for the scripts"),
      .init(name: "--media", help: "list the files shared there, for the scripts"),
    ],
    summary: "print what bash, zsh or fish needs to complete commands and names",
    details: "Its first lines say into which file it goes.",
    examples: [
      .init("parley completion bash", "for bash"), .init("parley completion zsh", "for zsh"),
      .init("parley completion fish", "for fish"),
    ], run: Completion.completion)

  static let manual = Command(
    name: "manual", summary: "print the man page",
    examples: [
      .init("parley manual | man -l -", "read it")
    ], run: Manual.manual)

  static let id = Command(
    name: "id", summary: "print your ID, which others may use to reach you with tell",
    examples: [.init("parley id", "print it")], run: NodeCommands.id)

  static let passphrase = Command(
    name: "passphrase", arguments: [.init("set|change|remove")],
    options: [
      .init(
        name: "--passphrase-file", value: "F",
        help: "read the passphrase from the first line of F; - for standard input"),
      .init(name: "--new-passphrase-file", value: "F", help: "change: read the new one from the first line of F"),
    ],
    summary: "seal what your node keeps on the disk with a passphrase",
    details: """
      Only while your node is not running. Without the options it is asked for at the
      terminal. Sealed are your identity, the secrets of channels, messages, people's names
      and the list of shared files; not the files themselves, nor when you wrote to whom.
      A passphrase that is forgotten cannot be found again by anybody.
      """,
    examples: [
      .init("parley passphrase set", "asks for one, twice"),
      .init("parley passphrase change", "asks for the old one and the new one"),
      .init("parley passphrase remove --passphrase-file ~/home.txt", "everything is plain again"),
    ], run: PassphraseCommands.passphrase)

  static let identity = Command(
    name: "identity", arguments: [.init("export|import"), .init("FILE")],
    options: [
      .init(name: "--file-passphrase-file", value: "F", help: "read the passphrase of FILE from the first line of F"),
      .init(name: "--passphrase-file", value: "F", help: "export: the home's passphrase, when it has one"),
    ],
    summary: "move who you are to another machine, in one encrypted file",
    details: """
      Only while your node is not running. In the file are your identity, your name and the
      secrets of your channels, sealed with a passphrase of its own; messages come from the
      others again. An import replaces no identity. One identity runs in one place: when
      the new home is used, a node on the old one ends and does not start again.
      """,
    examples: [
      .init("parley identity export me.parley", "asks for a passphrase for the file, twice"),
      .init("parley identity import me.parley", "on the other machine"),
      .init("parley identity import me.parley --home ~/second", "into another home"),
    ], run: IdentityCommands.identity)

  // MARK: Channels

  static let roomOption = Command.Option(
    name: "--room", help: "a room: lively and lossy by choice; without it a group")

  static let create = Command(
    name: "create", arguments: [.init("CHANNEL")], options: [roomOption],
    summary: "make a channel that you own; others come in by invitation",
    details: "Nobody can guess its secret. A second channel of that name is another channel.",
    examples: [
      .init("parley create physics", "and be in it"), .init("parley create stage --room", "a lively one, for many"),
    ], run: ChannelCommands.create)

  static let invite = Command(
    name: "invite", arguments: [.init("CHANNEL")],
    options: [
      .init(name: "--role", value: "ROLE", help: "member or admin; else member"),
      .init(name: "--expires", value: "TIME", help: "until when it counts, such as 30m, 8h or 7d; else for ever"),
      .init(name: "--uses", value: "N", help: "how many may come with it; else any number"),
      .init(name: "--no-qr", help: "the link alone"),
    ],
    summary: "print a link and a QR code that let others into a channel of yours",
    details: """
      Whoever has the link can join, so show it to nobody else. A member who is removed keeps a link
      that still counts: give links that expire.
      """,
    examples: [
      .init("parley invite physics --expires 8h --uses 30", "for a class"),
      .init("parley invite physics --role admin --uses 1", "for somebody who shall help you"),
      .init("parley invite physics --no-qr", "the link alone"),
    ], run: ChannelCommands.invite)

  static let rotate = Command(
    name: "rotate", arguments: [.init("CHANNEL")], summary: "give a channel of yours a new secret",
    details: "Members get it from each other, those that are away when they come back. Old invitations go on to count.",
    examples: [.init("parley rotate physics", "when its secret may be known to others")], run: ChannelCommands.rotate)

  static let join = Command(
    name: "join", arguments: [.init("CHANNEL or LINK", .optional)],
    options: [
      .init(
        name: "--link-file", value: "F", help: "join by the invitation in the first line of F; - for standard input"),
      .init(name: "--open", help: "an open channel: anyone who guesses its name can read it"),
      roomOption,
      .init(
        name: "--passphrase-file", value: "F",
        help: "read the passphrase from the first line of F; - for standard input"),
      .init(
        name: "--organiser", value: "KEY",
        help: "show only what is said with a login token that this key signed"),
    ],
    summary: "join a channel",
    details: """
      With neither option the passphrase is asked for at the terminal. Who has the same
      passphrase for the same name is in the same channel; nobody else can read it.
      Without CHANNEL it asks for the link of an invitation. Others on this machine can see a link
      that is given as an argument: let it ask, or use --link-file.
      """,
    examples: [
      .init("parley join team", "asks for the passphrase"),
      .init("parley join lobby --open", "anyone may join"),
      .init("parley join stage --open --room", "a room: all who join say so"),
      .init("parley join team --passphrase-file ~/team.txt", "for scripts"),
      .init("parley join", "asks for the link of an invitation"),
      .init("parley join --link-file link.txt", "the link from a file"),
    ], run: ChannelCommands.join)

  static let leave = Command(
    name: "leave", arguments: [.init("CHANNEL")], summary: "leave a channel",
    examples: [.init("parley leave team", "others see you leave at once")], run: ChannelCommands.leave)

  static let channels = Command(
    name: "channels", summary: "list the channels you are in",
    examples: [.init("parley channels", "names, and how many are there")], run: ChannelCommands.channels)

  static let members = Command(
    name: "members", arguments: [.init("CHANNEL")], summary: "list who is in a channel, and whose hand is up",
    examples: [.init("parley members team", "online first, then offline")], run: ChannelCommands.members)

  // MARK: Talk

  static let send = Command(
    name: "send", arguments: [.init("CHANNEL"), .init("TEXT", .any)],
    options: draftOptions + [
      .init(
        name: "--to", value: "PEER", isRepeatable: true,
        help: "only for these members, at most 20, named as for tell; nobody else can read it"),
      .init(name: "--wait", value: "S", help: "wait up to S seconds until everybody present has it"),
    ],
    summary: "send a message to a channel",
    details: "With - for TEXT the message is read from standard input. Prints the message's ID.",
    examples: draftExamples("send team") + [
      .init("parley send team \"Lunch?\"", "say it"),
      .init("parley send team --to Ben --to Eva \"Only for you two\"", "to some of the channel"),
      .init("parley send team --wait 5 Lunch", "and print how many have it"),
      .init("uptime | parley send team -", "what another program says"),
      .init("parley send team -- --wait", "a text that starts with a dash"),
    ], run: MessageCommands.send)

  static let tell = Command(
    name: "tell", arguments: [.init("PEER"), .init("TEXT", .any)], options: draftOptions,
    summary: "send a message to one person only",
    details: """
      PEER is an ID, the start of one (4 characters or more), or a name that only one person has.
      A message to somebody who is away waits on your disk and goes out when they appear.
      """,
    examples: draftExamples("tell Ben") + [
      .init("parley tell Ben \"Call me\"", "by name"), .init("parley tell k3vq Hello", "by the start of the ID"),
    ], run: MessageCommands.tell)

  static let hand = Command(
    name: "hand", arguments: [.init("CHANNEL"), .init("up|down")], summary: "raise your hand, or take it down",
    examples: [.init("parley hand team up", "raise it"), .init("parley hand team down", "take it down")],
    run: MessageCommands.hand)

  static let history = Command(
    name: "history", arguments: [.init("CHANNEL")],
    options: [
      .init(name: "--limit", value: "N", help: "the last N messages, 1 to 10000; 50 when not given"),
      .init(name: "--ids", help: "each with its ID before it"),
    ],
    summary: "show the last messages of a channel",
    examples: [.init("parley history team --limit 10", "the last ten")], run: MessageCommands.history)

  static let search = Command(
    name: "search", arguments: [.init("[CHANNEL] WORDS", .many)],
    options: [.init(name: "--limit", value: "N", help: "the newest N messages, 1 to 1000; 50 when not given")],
    summary: "find messages by their words and files by their names, newest first",
    details: """
      Finds what has every word, in any language; the last one may be the start of a longer word.
      Case and accents do not count. If the first of several words is a channel you are in, only that
      channel is searched; else all of them are.
      """,
    examples: [
      .init("parley search lunch", "in all channels"), .init("parley search team lunch friday", "in one"),
      .init("parley search 开会 --limit 5", "the last five"),
      .init("parley search \"team lunch\"", "both words, everywhere"),
    ], run: MessageCommands.search)

  static let watch = Command(
    name: "watch", arguments: [.init("CHANNEL", .optional)],
    options: [
      .init(name: "--since", value: "CURSOR", help: "first every message stored after this one; 0: all that is kept"),
      .init(name: "--reconnect", value: "S", help: "when the node ends, wait up to S seconds for it and go on"),
    ],
    summary: "show what happens, as it happens, until Ctrl-C",
    details: """
      Each message has a cursor (a member of its JSON). Who keeps the last one and begins after it
      misses no message and sees none twice, whatever ended in between.
      """,
    examples: [
      .init("parley watch", "all channels"), .init("parley watch team --json", "one, for a script"),
      .init("parley watch team --json --since 4096 --reconnect 60", "go on after the last message seen"),
    ], run: MessageCommands.watch)

  static let chat = Command(
    name: "chat", arguments: [.init("CHANNEL")],
    options: [
      .init(name: "--open", help: "join it as an open channel, without asking"),
      .init(name: "--passphrase-file", value: "F", help: "join it with this passphrase, without asking"),
      .init(name: "--down", help: "end the node on quitting, if chat started it"),
      .init(name: "--no-bell", help: "do not ring when somebody writes your name"),
    ],
    summary: "talk in a channel; starts a node if none runs",
    details: """
      Messages appear above the line you write. /help lists what else can be done.
      A node that chat starts goes on running afterwards, so that you stay in your channels; parley down ends it.
      """,
    examples: [
      .init("parley chat team", "asks how to join, the first time"),
      .init("parley chat lobby --open", "an open channel"),
    ], run: Chat.run)

  // MARK: Files

  static let share = Command(
    name: "share", arguments: [.init("CHANNEL"), .init("FILE", .many)],
    options: [
      .init(name: "--as", value: "KIND", help: "photo, video, voice or file; else judged by the content, never voice"),
      .init(name: "--original", help: "photos as they are, with the place where they were taken"),
      .init(name: "--duration", value: "S", help: "seconds of a voice or video whose file does not say"),
      .init(name: "--thumbnail", value: "FILE", help: "a picture for a video; else one of its frames"),
      .init(name: "--ext", value: "JSON", help: "an object for your application, beside the file"),
    ],
    summary: "share files and folders with a channel",
    details: """
      They stay where they are and are read from there. Prints a media ID for each; a folder has one
      for all its files. Links and what cannot be read are left out of a folder, with a word each.
      Of a photo everything is left out that says where, when and with what it was taken, unless --original.
      """,
    examples: [
      .init("parley share team photos/", "a folder"),
      .init("parley share team plan.pdf", "one file"), .init("parley share team --as photo *.jpg", "photos"),
      .init("parley share team --as voice note.ogg", "recorded speech"),
    ], run: MediaCommands.share)

  static let unshare = Command(
    name: "unshare", arguments: [.init("MEDIA_ID")], summary: "stop sharing a file from here",
    examples: [.init("parley unshare ID", "others who have it may still share it")], run: MediaCommands.unshare)

  static let media = Command(
    name: "media", arguments: [.init("CHANNEL")], summary: "list the files shared in a channel",
    examples: [.init("parley media team", "ID, name, size, from whom, how many have it")], run: MediaCommands.media)

  static let files = Command(
    name: "files", arguments: [.init("MEDIA_ID")], summary: "list what is in a shared folder",
    details: "Size and path of each file; nothing else of it is fetched.",
    examples: [.init("parley files ID", "before downloading it")], run: MediaCommands.files)

  static let download = Command(
    name: "download", arguments: [.init("MEDIA_ID")],
    options: [
      .init(name: "--output", short: "-o", value: "PATH", help: "a file or folder; - for standard output"),
      .init(name: "--force", help: "replace PATH if it exists; a folder never is"),
      .init(
        name: "--only", value: "PATH", isRepeatable: true, help: "of a folder, these files or subfolders; * and ? too"),
      .init(name: "--executable", help: "of a folder, make programs executable as they were"),
      .init(name: "--range", value: "FROM-TO", help: "only these bytes, from 0; FROM- to the end, -COUNT the last"),
    ],
    summary: "download a shared file or folder",
    details: """
      Without -o it goes into the current folder under the sender's name for it, made safe; a name
      that is taken gets a number. Every part is checked before it is written. Prints the path.
      Ctrl-C pauses it: parley downloads lists it. With -o - the bytes come in order while they arrive.
      """,
    examples: [
      .init("parley download ID", "into this folder"),
      .init("parley download ID -o plan.pdf", "under this name"),
      .init("parley download ID -o - | less", "to another program"),
      .init("parley download ID --only docs --only '*.jpg'", "a part of a folder"),
      .init("parley download ID --range 0-1023 -o head", "the first 1024 bytes"),
    ], run: MediaCommands.download)

  static let downloads = Command(
    name: "downloads", arguments: [.init("pause|resume|cancel", .optional), .init("ID", .optional)],
    options: [.init(name: "--keep-part", help: "with cancel: keep what was received for a week")],
    summary: "list downloads; pause, resume or cancel one",
    details: """
      Those that a node left when it ended are listed as paused and can be resumed. At most four run at
      once, others are queued. A cancelled download leaves nothing behind.
      """,
    examples: [
      .init("parley downloads", "ID, state, done, size, rate, time left, sources, name"),
      .init("parley downloads pause 3", "keep what is there, ask for no more"),
      .init("parley downloads resume 3", "go on, also after a restart"),
      .init("parley downloads cancel 3", "end it and leave nothing"),
    ], run: DownloadCommands.downloads)
}
