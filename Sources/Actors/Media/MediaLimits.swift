import ParleyMachines
import ParleyVocabulary

/// What users set for files.
package struct MediaLimits: Sendable {
  /// Bytes a second, of blocks; nil: as fast as it goes.
  package var uploadByteRate: UInt64?
  package var downloadByteRate: UInt64?
  /// On the disk, in part files of downloads that are paused or broke off; nil: no bound but their age.
  package var partByteCountMax: UInt64?

  package init(uploadByteRate: UInt64? = nil, downloadByteRate: UInt64? = nil, partByteCountMax: UInt64? = nil) {
    self.uploadByteRate = uploadByteRate
    self.downloadByteRate = downloadByteRate
    self.partByteCountMax = partByteCountMax
  }
}

extension MediaActor {
  /// Downloads of earlier runs that can be gone on with.
  package func restore(_ downloads: [KeptDownload]) {
    for download in downloads {
      keep(download)
      enlistKept(download)
    }
    limitParts()
  }

  /// A part counts as much as it may come to take, the whole file. Those go first that were not used for longest; of
  /// running downloads none goes.
  func limitParts() {
    guard let byteCountMax = limits.partByteCountMax else { return }
    keptOrder.removeAll { kept[$0] == nil }
    var byteCount = kept.values.reduce(UInt64(0)) { $0 + $1.manifest.byteCount }
    while byteCount > byteCountMax, !keptOrder.isEmpty {
      guard let oldest = kept.removeValue(forKey: keptOrder.removeFirst()) else { continue }
      byteCount -= min(byteCount, oldest.manifest.byteCount)
      partIsGone(oldest.manifest.id)
      discard(oldest)
      switchboard.notices(
        .trouble(
          "the part of \(oldest.manifest.id.text) in \(oldest.folder.escapedLine) is removed: parts of downloads may "
            + "take \(byteCountMax) bytes; downloading it again begins anew"))
    }
  }

  /// Kept from now on.
  func keep(_ part: KeptDownload) {
    let id = part.manifest.id
    kept[id] = part
    keptOrder.removeAll { $0 == id }
    keptOrder.append(id)
  }
}

extension MediaActor {
  /// Shares what may be downloaded now among those that have used up their last share, in turn.
  func grant(_ now: Instant) {
    guard downloadLimit != nil else { return }
    let tags = downloads.keys.filter { downloads[$0]!.isOnNetwork && !downloads[$0]!.machine.isFinished }.sorted()
    guard !tags.isEmpty else { return }
    grantTurn = (grantTurn + 1) % tags.count
    let share = max(Int64(Limit.mediaBlockByteCount), downloadLimit!.available(at: now) / Int64(tags.count))
    for tag in tags[grantTurn...] + tags[..<grantTurn] {
      let more = share - Int64(downloads[tag]?.machine.allowance ?? 0)
      guard more > 0, downloadLimit!.available(at: now) > 0 else { continue }
      downloadLimit!.take(Int(more))
      download(tag, .allowed(byteCount: Int(more)))
    }
    wake(now + DownloadRule.grantAgain)
  }
}
