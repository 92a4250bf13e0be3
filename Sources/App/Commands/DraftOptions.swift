/// What send and tell take beside a text.
extension CommandTable {
  static let draftOptions: [Command.Option] = [
    .init(name: "--as", value: "KIND", help: "text, location or custom; text when not given"),
    .init(name: "--latitude", value: "DEGREES", help: "of a location: north is positive, -90 to 90"),
    .init(name: "--longitude", value: "DEGREES", help: "of a location: east is positive, -180 to 180"),
    .init(name: "--address", value: "TEXT", help: "of a location"),
    .init(name: "--building", value: "TEXT", help: "of a location"),
    .init(name: "--event", value: "NAME", help: "of a custom message: what your application calls it"),
    .init(name: "--field", value: "NAME=TEXT", isRepeatable: true, help: "of a custom message: a text by name"),
    .init(name: "--ext", value: "JSON", help: "an object for your application, beside whatever is said"),
  ]

  static func draftExamples(_ start: String) -> [Command.Example] {
    [
      .init("parley \(start) --as location --latitude 52.5163 --longitude 13.3777", "a place"),
      .init("parley \(start) --as custom --event seat --field row=3", "for other programs"),
    ]
  }
}
