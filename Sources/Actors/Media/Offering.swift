import ParleyMachines
import ParleyVocabulary

/// What a download has verified and written is served to others while it goes on.
extension MediaActor {
  /// From when all hashes are known, before the first piece: who asks then is told of each piece as it comes.
  func offer(_ tag: UInt32) {
    guard let current = downloads[tag], current.isOnNetwork, current.partName != nil, offered[current.id] == nil,
      held[current.id] == nil, !current.machine.isFinished, current.good == nil, let served = current.machine.served
    else { return }
    offered[current.id] = tag
    serve(.partShared(served, holding: current.machine.holding))
    step(.held(current.id, current.channel))
  }

  func withdraw(_ tag: UInt32, _ download: Download) {
    guard offered[download.id] == tag else { return }
    offered[download.id] = nil
    step(.unheld(download.id, download.channel))
    serve(.unshared(download.id))
    for read in download.readsWhileLanding { serve(.readFailed(read.id, .unknown)) }
  }

  func readPart(_ tag: UInt32, _ read: ServedRead) {
    if downloads[tag]!.isLanding {
      downloads[tag]!.readsWhileLanding.append(read)
    } else {
      landDisk.post(.readPart(tag, read))
    }
  }
}
