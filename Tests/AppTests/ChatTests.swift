import Glibc
import Parley
import Testing

@testable import ParleyApp

@Suite struct ChatTests {
  private func read(_ text: String, flushing: Bool = true) -> String {
    var filter = PasteFilter()
    var bytes = Array(text.utf8).flatMap { filter.take($0) }
    if flushing { bytes += filter.flush() }
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test func whatIsPastedBecomesOneLine() {
    #expect(read("a\u{1B}[200~one\ntwo\r\nthree\rfour\n\u{1B}[201~\n") == "aone␤two␤three␤four\n")
    #expect(read("\u{1B}[200~\n\n a\t你\u{7}\u{1}\u{7F}b\u{1B}[201~") == "␤␤ a 你b")
    #expect(PasteFilter.text(of: "one␤two") == "one\ntwo")
  }

  @Test func otherKeysAreLeftAlone() {
    #expect(read("\u{1B}[A\u{1B}OBx\u{1B}") == "\u{1B}[A\u{1B}OBx\u{1B}")
    #expect(read("\u{1B}[200A") == "\u{1B}[200A")
    #expect(read("\u{1B}[201~") == "\u{1B}[201~")
    // A mark within a paste is taken for text that cannot be shown.
    #expect(read("\u{1B}[200~a\u{1B}[200~b\u{1B}[201~") == "a[200~b")
    #expect(read("\u{1B}[20", flushing: false) == "")
  }

  @Test func tabOffersCommandsNamesFilesAndMedia() {
    func offer(_ typed: String) -> Completions.Offer {
      Completions.offer(typed, names: { ["Ben", "Ana Maria"] }, media: { ["plan.pdf", "abcd"] })
    }
    #expect(offer("/mem").words.contains("/members"))
    #expect(offer("/mem").begun == "/mem")
    #expect(offer("/tell B") == .init(begun: "B", words: ["Ben", "\"Ana Maria\""]))
    #expect(offer("/download pl") == .init(begun: "pl", words: ["plan.pdf", "abcd"]))
    #expect(offer("ask @B") == .init(begun: "@B", words: ["Ben", "@Ben", "Ana Maria", "@Ana Maria"]))
    #expect(offer("ask ") == .init(begun: "", words: []))
    #expect(offer("/hand d").words == ["up", "down"])
    #expect(offer("/quit x").words.isEmpty)
  }

  @Test func filesAreOfferedAsTheyLie() throws {
    var template = Array("/tmp/parley-completions-XXXXXX".utf8CString)
    let folder = String(cString: try #require(mkdtemp(&template)))
    defer {
      for name in ["notes.txt", ".hidden", "bad\u{1B}name"] { unlink("\(folder)/\(name)") }
      rmdir("\(folder)/sub")
      rmdir(folder)
    }
    for name in ["notes.txt", ".hidden", "bad\u{1B}name"] {
      close(open("\(folder)/\(name)", O_CREAT | O_WRONLY, 0o600))
    }
    mkdir("\(folder)/sub", 0o700)
    #expect(Completions.paths(folder + "/") == ["\(folder)/notes.txt", "\(folder)/sub/"])
    #expect(Completions.paths(folder + "/.h") == ["\(folder)/.hidden", "\(folder)/notes.txt", "\(folder)/sub/"])
    #expect(Completions.paths("/no/such/folder/").isEmpty)
  }

  @Test(arguments: [
    ("Ana", "what do you say, ana?", true), ("Ana", "@Ana!", true), ("Ana", "bananas", false), ("Ana", "Anas", false),
    ("Ana", "", false), ("", "Ana", false), ("小明", "请小明回答", true), ("Ana", "Ana", true), ("Ana", "7Ana", false),
  ])
  func aNameIsFoundAsAWord(_ name: String, _ text: String, _ isMade: Bool) {
    #expect(Mention.isMade(of: name, in: text) == isMade)
  }

  @Test func tokensAndOrganisersAreAskedForInAChat() {
    #expect(ChatCommand("/token") == .token(""))
    #expect(ChatCommand("/token ~/my token") == .token("~/my token"))
    #expect(ChatCommand("/organiser none") == .organiser("none"))
  }

  @Test func completionsHaveEveryCommandAndOption() {
    let scripts = [
      Completion.bash(CommandTable.all), Completion.zsh(CommandTable.sections), Completion.fish(CommandTable.all),
    ]
    for script in scripts {
      for command in CommandTable.all {
        #expect(script.contains(command.name), "\(command.name) is missing")
        for option in command.options {
          #expect(script.contains(option.name.dropFirst(2)), "\(command.name) \(option.name) is missing")
        }
      }
    }
    // What others chose is never given to what would run it.
    #expect(scripts[0].contains("compgen -W \"$(") == false)
  }

  @Test func theManualHasEveryCommandAndNoTextIsARequest() {
    let page = Manual.page(CommandTable.sections)
    for command in CommandTable.all { #expect(page.contains(".SS parley \(command.name)")) }
    let known: Set = [".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".I", ".BR"]
    for line in page.split(separator: "\n") where line.hasPrefix(".") {
      #expect(known.contains(String(line.prefix { $0 != " " })), "\(line)")
    }
    #expect(Manual.roff(".x\n'y\n-a\\b") == "\\&.x\n\\&'y\n\\-a\\eb")
  }
}
