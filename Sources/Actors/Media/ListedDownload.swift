import ParleyDisk
import ParleyMachines
import ParleyVocabulary

/// A download as its user knows it: it keeps its number when it is paused and goes on. Its tag, under which machines
/// and disk know it, is another one each time it starts, so that late answers to what it asked before mean nothing.
package struct ListedDownload: Sendable {
  package enum State: Sendable {
    /// → `running`: its turn.
    case queued
    /// → `paused`, `finished`, `failed`.
    case running
    /// Also what was under way when an earlier run ended. → `queued`: it is resumed.
    case paused
    case finished(path: String)
    /// → `queued`: it is tried again.
    case failed(DownloadEnd, keptByteCount: UInt64)
  }

  package let number: UInt32
  package internal(set) var order: DownloadOrder
  package internal(set) var state = State.queued
  package internal(set) var doneByteCount: UInt64 = 0
  /// Nil until the manifest is there.
  package internal(set) var byteCount: UInt64?
  package internal(set) var sourceCount = 0
  package internal(set) var bytesPerSecond: UInt64 = 0
  /// While it waits or runs.
  var tag: UInt32?
  private var meter = RateMeter()

  init(number: UInt32, order: DownloadOrder) {
    self.number = number
    self.order = order
  }

  var isActive: Bool { tag != nil }
  var isOver: Bool {
    switch state {
    case .finished, .failed: true
    case .queued, .running, .paused: false
    }
  }
  var canResume: Bool {
    switch state {
    case .paused, .failed: order.target != nil
    case .queued, .running, .finished: false
    }
  }

  mutating func measure(_ done: UInt64, at now: Instant) {
    doneByteCount = done
    meter.note(done, at: now)
    bytesPerSecond = meter.bytesPerSecond(at: now)
  }

  mutating func refresh(at now: Instant) { bytesPerSecond = isActive ? meter.bytesPerSecond(at: now) : 0 }

  mutating func rest(_ state: State) {
    self.state = state
    tag = nil
    sourceCount = 0
    bytesPerSecond = 0
    meter = RateMeter()
  }
}

// MARK: - The list

extension MediaActor {
  /// Of those that ended, so many are still listed.
  static let endedListedMax = 64

  /// In the order in which they were asked for.
  package func listDownloads() -> [ListedDownload] {
    let now = SystemClock.now()
    for number in listed.keys { listed[number]!.refresh(at: now) }
    return listed.values.sorted { $0.number < $1.number }
  }

  func newTag() -> UInt32 {
    defer { nextTag = nextTag % ((1 << 30) - 1) + 1 }
    return nextTag
  }

  func number(of tag: UInt32) -> UInt32? { listed.first { $0.value.tag == tag }?.key }

  /// Puts it on the list, or on again.
  func enlist(_ order: DownloadOrder, _ tag: UInt32, as number: UInt32) {
    if listed[number] == nil { listed[number] = ListedDownload(number: number, order: order) }
    listed[number]!.state = .queued
    listed[number]!.tag = tag
    let ended = listed.values.filter(\.isOver).map(\.number)
    for old in ended.sorted().prefix(max(0, ended.count - Self.endedListedMax)) { listed[old] = nil }
  }

  /// What is told of a download goes to its list and to whoever ordered it.
  func report(_ tag: UInt32, _ order: DownloadOrder, _ news: DownloadNews) {
    guard let number = number(of: tag) else { return order.report(news) }
    switch news {
    case .progress(var progress):
      listed[number]!.state = .running
      listed[number]!.sourceCount = progress.sourceCount
      if order.target != nil {
        listed[number]!.byteCount = progress.byteCount
        listed[number]!.measure(progress.doneByteCount, at: SystemClock.now())
      }
      progress.bytesPerSecond = listed[number]!.bytesPerSecond
      order.report(.progress(progress))
    case .contents: order.report(news)
    case .finished(let path):
      listed[number]!.rest(.finished(path: path))
      order.report(news)
    case .failed(let end, let keptByteCount, _):
      if case .paused = end {
        listed[number]!.rest(.paused)
        listed[number]!.doneByteCount = keptByteCount
      } else {
        listed[number]!.rest(.failed(end, keptByteCount: keptByteCount))
      }
      order.report(news)
    }
  }

  /// Another download takes up what these left.
  func supersede(_ id: MediaID, by tag: UInt32) {
    for number in listed.keys.sorted() where listed[number]!.order.id == id && listed[number]!.canResume {
      forget(number)
    }
  }

  /// Whoever still waits for it is told that it is over.
  private func forget(_ number: UInt32) {
    guard let old = listed.removeValue(forKey: number), case .paused = old.state else { return }
    old.order.report(.failed(.cancelled, keptByteCount: 0, byteCount: old.byteCount ?? 0))
  }
}

// MARK: - What users do with them

extension MediaActor {
  /// Keeps what is there and lets others have its turn. False when there is nothing that could be paused.
  package func pauseDownload(_ number: UInt32) -> Bool {
    guard let item = listed[number], item.order.target != nil else { return false }
    if let tag = item.tag {
      if downloads[tag]?.isLanding == false { fail(tag, .paused) }
      return true
    }
    if case .paused = item.state { return true }
    return false
  }

  /// Goes on with what is paused, or tries again what failed. False when there is no such thing.
  /// `name`: as announced, for what an earlier run left.
  package func resumeDownload(_ number: UInt32, name: String?) -> Bool {
    guard let item = listed[number] else { return false }
    if item.isActive { return true }
    guard item.canResume else { return false }
    if case .folder(let path, _) = item.order.target, let name {
      listed[number]!.order.target = .folder(path, SafeFileName(received: name))
    }
    let tag = newTag()
    enlist(item.order, tag, as: number)
    queue(listed[number]!.order, tag)
    return true
  }

  /// Ends it for good. Without `keepingPart` nothing of it is left on the disk.
  package func cancelDownload(_ number: UInt32, keepingPart: Bool) -> Bool {
    guard let item = listed[number] else { return false }
    let id = item.order.id
    if let tag = item.tag {
      guard downloads[tag]?.isLanding == false else { return true }
      let isRecorded = downloads[tag]!.isRecorded
      fail(tag, .cancelled, keepingPart: keepingPart)
      guard !keepingPart else { return true }
      if isRecorded { dropKept(id) }
      listed[number] = nil
    } else if !keepingPart {
      guard item.canResume else { return false }
      forget(number)
      dropKept(id)
    }
    return true
  }

  /// What is listed begins anew when it is resumed.
  func partIsGone(_ id: MediaID) {
    for number in listed.keys where listed[number]!.order.id == id && listed[number]!.canResume {
      listed[number]!.doneByteCount = 0
    }
  }

  /// Unless another download goes on with it.
  private func dropKept(_ id: MediaID) {
    if let found = kept.removeValue(forKey: id) { discard(found) }
  }
}
