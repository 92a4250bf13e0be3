import ParleyVocabulary

/// Why a program gave no answer. The share goes on without.
package enum ToolError: Error, Equatable, Sendable, CustomStringConvertible {
  case missing(tool: String)
  case notStarted(tool: String, reason: String)
  /// The system cannot keep a program from the network and from writing: then none is started.
  case notConfined(tool: String, reason: String)
  case tooSlow(tool: String, seconds: Int)
  case tooMuchOutput(tool: String, byteCountMax: Int)
  /// `words`: the first line of what it said, escaped, at most 200 characters.
  case failed(tool: String, reason: String, words: String)

  package var description: String {
    switch self {
    case .missing(let tool): "\(tool.escapedLine) is not installed"
    case .notStarted(let tool, let reason): "\(tool.escapedLine) could not be started: \(reason)"
    case .notConfined(let tool, let reason):
      "\(tool.escapedLine) was not started: this system cannot confine it (\(reason))"
    case .tooSlow(let tool, let seconds): "\(tool.escapedLine) was ended after \(seconds) s"
    case .tooMuchOutput(let tool, let byteCountMax):
      "\(tool.escapedLine) was ended: it wrote more than \(byteCountMax) bytes"
    case .failed(let tool, let reason, let words):
      "\(tool.escapedLine) \(reason)" + (words.isEmpty ? "" : ": \(words)")
    }
  }
}
