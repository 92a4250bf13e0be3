import CUTF8Proc

/// A text as it is searched: folded, and cut into tokens by what its scripts call for.
///
/// Folded means: without case, compatibility forms (ﬁ, Ａ, ①) and accents, Hebrew points and Arabic vowel signs; letters
/// that keyboards and habits mix are one letter. Marks that tell words apart (Indic vowels, Japanese ゛) stay. Words of
/// scripts that put spaces between them are tokens; of scripts that do not, each character is one, and so is each emoji
/// and other symbol. What only joins or selects emoji is left out: 👩‍💻 is 👩 and 💻, 👍🏽 is 👍 and 🏽. A flag is one token.
package struct SearchText: Equatable, Sendable {
  /// With one space between two. No token holds a space, a quote, or an ASCII character other than lower-case letters,
  /// digits and those of `symbols`.
  package let tokens: String
  /// Whether the last token is a word, of which more letters may follow.
  package let endsInWord: Bool

  /// ASCII characters that are tokens, as in C++ or #3; the others that are neither letter nor digit separate words.
  package static let symbols = "#$+<=>^`|~"

  /// Takes the text up to where its tokens would have more than `byteCountMax` bytes: one character may stand for a
  /// sentence (U+FDFA), so tokens can be eleven times as long as the text.
  package init(_ text: String, byteCountMax: Int) {
    var cutter = TokenCutter()
    for scalar in Self.folded(text, countMax: byteCountMax) where cutter.take(scalar, byteCountMax) == false { break }
    tokens = String(decoding: cutter.bytes, as: UTF8.self)
    endsInWord = cutter.last == .word
  }

  private static func folded(_ text: String, countMax: Int) -> [Unicode.Scalar] {
    var scalars: [Int32] = []
    scalars.reserveCapacity(text.utf8.count)
    var isComposed = true
    // Unicode's longest decomposition has 18 (U+FDFA); decomposed one by one they keep their order, since putting the
    // marks in order would cost the square of their number, which the sender chooses.
    withUnsafeTemporaryAllocation(of: Int32.self, capacity: 32) { buffer in
      for scalar in text.unicodeScalars {
        guard scalars.count < countMax else { return }
        if scalar.isASCII {
          let isUpper = (0x41...0x5A).contains(scalar.value)
          scalars.append(Int32(scalar.value | (isUpper ? 0x20 : 0)))
          continue
        }
        isComposed = false
        let options = UTF8PROC_DECOMPOSE.rawValue | UTF8PROC_COMPAT.rawValue | UTF8PROC_CASEFOLD.rawValue
        var boundary: Int32 = 0
        let count = utf8proc_decompose_char(
          Int32(scalar.value), buffer.baseAddress, buffer.count, utf8proc_option_t(rawValue: options), &boundary)
        for part in buffer.prefix(max(0, count)) {
          guard let part = Unicode.Scalar(UInt32(bitPattern: part)) else { continue }
          part.fold(into: &scalars)
        }
      }
    }
    if !isComposed {
      // Hangul syllables and kana are one character again.
      let options = utf8proc_option_t(rawValue: UTF8PROC_COMPOSE.rawValue | UTF8PROC_STABLE.rawValue)
      let count = scalars.withUnsafeMutableBufferPointer {
        utf8proc_normalize_utf32($0.baseAddress, $0.count, options)
      }
      scalars.removeSubrange(max(0, min(count, scalars.count))...)
    }
    return scalars.compactMap { Unicode.Scalar(UInt32(bitPattern: $0)) }
  }
}

private struct TokenCutter {
  enum Kind: Equatable {
    case separator, word, single
    /// Half a flag, until the other half comes.
    case flagStart
  }

  var bytes: [UInt8] = []
  /// Of the last token.
  private(set) var last = Kind.separator
  private var isSpaceDue = false

  /// False when it does not fit any more.
  mutating func take(_ scalar: Unicode.Scalar, _ byteCountMax: Int) -> Bool {
    let kind = scalar.kindForSearch
    guard kind != .separator else {
      isSpaceDue = !bytes.isEmpty
      return true
    }
    let isHalfFlag = kind == .flagStart && last == .flagStart
    let goesOn = !isSpaceDue && (isHalfFlag || kind == .word && last == .word)
    let isSpaced = !goesOn && !bytes.isEmpty
    guard bytes.count + (isSpaced ? 1 : 0) + UTF8.width(scalar) <= byteCountMax else { return false }
    if isSpaced { bytes.append(0x20) }
    bytes += UTF8.encode(scalar)!
    isSpaceDue = false
    last = isHalfFlag && goesOn ? .single : kind
    return true
  }
}

extension Unicode.Scalar {
  fileprivate var kindForSearch: TokenCutter.Kind {
    switch value {
    case 0x30...0x39, 0x61...0x7A: return .word
    case 0..<0x80: return SearchText.symbols.unicodeScalars.contains(self) ? .single : .separator
    case 0x1F1E6...0x1F1FF: return .flagStart
    default: break
    }
    switch utf8proc_category(Int32(value)) {
    case UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZL, UTF8PROC_CATEGORY_ZP, UTF8PROC_CATEGORY_CC,
      UTF8PROC_CATEGORY_CF, UTF8PROC_CATEGORY_CS, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PD, UTF8PROC_CATEGORY_PS,
      UTF8PROC_CATEGORY_PE, UTF8PROC_CATEGORY_PI, UTF8PROC_CATEGORY_PF, UTF8PROC_CATEGORY_PO:
      return .separator
    // Private use, and what utf8proc is too old to know: mostly emoji.
    case UTF8PROC_CATEGORY_SM, UTF8PROC_CATEGORY_SC, UTF8PROC_CATEGORY_SK, UTF8PROC_CATEGORY_SO,
      UTF8PROC_CATEGORY_CO, UTF8PROC_CATEGORY_CN:
      return .single
    default: return isOfUnspacedScript ? .single : .word
    }
  }

  /// Of a script that is written without spaces between words, or (Korean) with particles joined to them.
  private var isOfUnspacedScript: Bool {
    switch value {
    case 0x0E00...0x0EFF,  // Thai, Lao
      0x1000...0x109F, 0xA9E0...0xA9FF, 0xAA60...0xAA7F,  // Myanmar
      0x1100...0x11FF, 0xA960...0xA97F, 0xAC00...0xD7FF,  // Hangul
      0x1780...0x17FF,  // Khmer
      0x1950...0x19DF, 0x1A20...0x1AAF, 0xAA80...0xAADF,  // Tai Le, New Tai Lue, Tai Tham, Tai Viet
      0x2E80...0x312F, 0x31A0...0x31FF,  // radicals, Han marks, kana, Bopomofo
      0x3400...0x4DBF, 0x4E00...0xA4CF,  // Han, Yi
      0xA980...0xA9DF,  // Javanese
      0xF900...0xFAFF,  // Han
      0x16FE0...0x18D8F, 0x1AFF0...0x1B2FF,  // Tangut, Khitan, kana, Nüshu
      0x20000...0x3FFFF:  // Han
      true
    default: false
    }
  }

  /// Appends what a part of a decomposition becomes: nothing, another letter, or itself.
  fileprivate func fold(into scalars: inout [Int32]) {
    switch value {
    case 0x0300...0x036F, 0x0483...0x0489, 0x1AB0...0x1AFF, 0x1DC0...0x1DFF, 0x20D0...0x20FF, 0xFE20...0xFE2F,
      0x0591...0x05BD, 0x05BF, 0x05C1...0x05C2, 0x05C4...0x05C5, 0x05C7,  // Hebrew points
      // Arabic vowel signs, hamza above and below, marks of the Quran, and the tatweel that only stretches
      0x0610...0x061A, 0x064B...0x065F, 0x0670, 0x06D6...0x06DC, 0x06DF...0x06E4, 0x06E7...0x06E8, 0x06EA...0x06ED,
      0x0640:
      return
    // Letters that Unicode does not decompose.
    case 0xE6: scalars += [0x61, 0x65]  // æ: ae
    case 0xF0, 0x111: scalars.append(0x64)  // ð, đ: d
    case 0xF8: scalars.append(0x6F)  // ø: o
    case 0xFE: scalars += [0x74, 0x68]  // þ: th
    case 0x127: scalars.append(0x68)  // ħ: h
    case 0x131: scalars.append(0x69)  // ı: i
    case 0x142: scalars.append(0x6C)  // ł: l
    case 0x153: scalars += [0x6F, 0x65]  // œ: oe
    case 0x167: scalars.append(0x74)  // ŧ: t
    // As Lucene's ArabicNormalizer and PersianNormalizer have them.
    case 0x0671: scalars.append(0x0627)  // alef wasla: alef
    case 0x0649, 0x06CC, 0x06D2: scalars.append(0x064A)  // alef maksura, Farsi yeh, yeh barree: yeh
    case 0x06A9: scalars.append(0x0643)  // keheh: kaf
    case 0x0629, 0x06C1: scalars.append(0x0647)  // teh marbuta, heh goal: heh
    default:
      if properties.isDefaultIgnorableCodePoint { return }
      if value > 0x7F, properties.generalCategory == .decimalNumber, let digit = properties.numericValue {
        scalars.append(0x30 + Int32(digit))
      } else {
        scalars.append(Int32(value))
      }
    }
  }
}
