import Glibc
import Parley

/// The `parley` executable.
@main enum App {
  static let version = "0.1.0"

  static func main() async {
    Interruption.catchSignals()
    let words = Array(CommandLine.arguments.dropFirst())
    do {
      switch try CommandLineParser(commands: CommandTable.all).parse(words) {
      case .version: Terminal.line("parley \(version)")
      case .help(let command): Terminal.raw(command.map(Help.text) ?? Help.overview(CommandTable.sections))
      case .run(let command, let invocation): try await command.run(invocation)
      }
    } catch let failure as Failure {
      if !failure.message.isEmpty { Terminal.note("parley: \(failure.message)") }
      exit(failure.status.rawValue)
    } catch {
      Terminal.note("parley: \("\(error)".escapedText)")
      exit(Failure.Status.unavailable.rawValue)
    }
  }
}
