import ParleyMachines
import ParleyStore
import ParleyVocabulary

/// What of a part file is believed, and what is hashed first.
extension MediaActor {
  func prepared(_ tag: UInt32, _ partName: String, _ asLeft: [Bool]?) {
    guard let current = downloads[tag] else { return }
    downloads[tag]!.partName = partName
    if case .copying = current.way { return copyMore(tag) }
    guard let layout = current.machine.layout else { return }
    var good = PieceSet(pieceCount: layout.pieceCount)
    guard let asLeft, let kept = current.kept else {
      // What was kept is gone, or not as it was left.
      if current.recordedCount > 0 { switchboard.store.post(.apply([.downloadRemove(current.id)])) }
      downloads[tag]!.recordedCount = 0
      downloads[tag]!.kept = nil
      return download(tag, .prepared(holding: good))
    }
    // What the store knows of was on the disk before. More may have been written than it was told, and a file to which
    // somebody else has written is checked whole.
    for piece in kept.holding {
      let file = layout.place(of: piece).file
      if asLeft[file], current.order.isSelected(file) { good.insert(piece) }
    }
    downloads[tag]!.unchecked = kept.checks(of: current.order.selected, besides: good)[...]
    downloads[tag]!.good = good
    recheckMore(tag)
  }

  func recheckMore(_ tag: UInt32) {
    guard let current = downloads[tag], let good = current.good else { return }
    guard !current.unchecked.isEmpty else {
      downloads[tag]!.good = nil
      downloads[tag]!.patienceCount = good.count
      trust(tag, good)
      return download(tag, .prepared(holding: good))
    }
    landDisk.post(.recheck(tag, Array(current.unchecked.prefix(DownloadRule.piecesAtOnce))))
    downloads[tag]!.unchecked = current.unchecked.dropFirst(DownloadRule.piecesAtOnce)
  }

  /// A part in which not all is that was recorded is not believed again, whatever is recorded later: a crash might come
  /// before that.
  private func trust(_ tag: UInt32, _ good: PieceSet) {
    guard let kept = downloads[tag]?.kept, let layout = downloads[tag]?.machine.layout else { return }
    let order = downloads[tag]!.order
    if kept.holding.allSatisfy({ good.contains($0) || !order.isSelected(layout.place(of: $0).file) }) {
      landDisk.post(.trust(tag))
    } else {
      downloads[tag]!.recordedCount = 0
    }
  }
}
