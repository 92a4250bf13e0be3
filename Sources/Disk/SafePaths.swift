import ParleyVocabulary

/// Where the files of a received folder go below it. Every component is made safe by itself; names that become the same
/// are numbered, so that each file and each folder keeps a place of its own. The same paths give the same places
/// everywhere and at every time, which resuming relies on.
package enum SafePaths {
  /// `paths`: those of a manifest, in its order. Each result is a relative path of safe components.
  package static func of(_ paths: [[String]]) -> [String] {
    var places = [String](repeating: "", count: paths.count)
    let units = paths.map { $0.map { Array($0.utf8) } }
    name(paths, units, in: paths.indices, depth: 0, below: "", &places)
    return places
  }

  /// Files of one folder lie together, as the manifest is in order.
  private static func name(
    _ paths: [[String]], _ units: [[[UInt8]]], in range: Range<Int>, depth: Int, below: String,
    _ places: inout [String]
  ) {
    var taken: Set<String> = []
    /// The next number to try, by what the name becomes with 2: long names may differ and still be numbered alike.
    var numbers: [String: Int] = [:]
    var start = range.lowerBound
    while start < range.upperBound {
      let component = units[start][depth]
      var end = start + 1
      while end < range.upperBound, units[end][depth] == component { end += 1 }
      let safe = SafeFileName(received: paths[start][depth])
      var name = safe.text
      if taken.contains(name) {
        let second = safe.numbered(2)
        var number = numbers[second] ?? 2
        repeat {
          name = safe.numbered(number)
          number += 1
        } while taken.contains(name)
        numbers[second] = number
      }
      taken.insert(name)
      let place = below.isEmpty ? name : below + "/" + name
      if units[start].count == depth + 1 {
        places[start] = place
      } else {
        Self.name(paths, units, in: start..<end, depth: depth + 1, below: place, &places)
      }
      start = end
    }
  }
}
