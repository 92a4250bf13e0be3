import ParleyVocabulary

/// What a hook is: a program of this machine, or an address of the user's.
package enum HookTarget: Sendable, Equatable {
  /// An absolute path. It is started without arguments, reads the question as its standard input, and answers on its
  /// standard output; an exit status other than 0 is no answer.
  case command(String)
  /// `http://…` or `https://…`. It gets the question as the body of a POST; what is not answered with a status from 200
  /// to 299 is no answer. Redirections are not followed, proxies not used.
  case address(String)
}

/// One question to a hook. Blocks; for a thread that may.
package struct HookCall: Sendable {
  /// Of an answer: twice what a message can have, and some.
  package static let answerByteCountMax = 65_536

  package let target: HookTarget
  package let milliseconds: Int
  /// JSON.
  package let question: [UInt8]

  package init(_ target: HookTarget, milliseconds: Int, question: [UInt8]) {
    self.target = target
    self.milliseconds = milliseconds
    self.question = question
  }

  package func run() -> Result<[UInt8], HookError> {
    do throws(HookError) {
      switch target {
      case .command(let path): return .success(try HookProcess(self).run(path))
      case .address(let url): return .success(try HookRequest(self).run(url))
      }
    } catch { return .failure(error) }
  }
}

/// Why a hook gave no answer.
package enum HookError: Error, Sendable, Equatable, CustomStringConvertible {
  case notStarted(reason: String)
  case tooSlow(milliseconds: Int)
  case tooMuch(byteCountMax: Int)
  /// It ended otherwise than well, or answered that it failed.
  case failed(reason: String)
  /// Too many questions wait already.
  case busy(countMax: Int)

  package var description: String {
    switch self {
    case .notStarted(let reason): "it cannot be called: \(reason)"
    case .tooSlow(let milliseconds): "it did not answer within \(milliseconds) ms"
    case .tooMuch(let byteCountMax): "it answered with more than \(byteCountMax) bytes"
    case .failed(let reason): reason
    case .busy(let countMax): "\(countMax) questions wait for it already"
    }
  }
}
