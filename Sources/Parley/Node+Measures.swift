import ParleyActors
import ParleyVocabulary

/// What the node counts of itself.
extension Node {
  /// Members, sessions, messages, bytes, queues, repairs, drops and latencies since the start. Empty before `run()` and
  /// after it.
  public func measures() async -> [Measure] {
    guard let engine else { return [] }
    let report = await engine.links.report()
    let commits = await engine.store.commitTimes
    return await memberMeasures() + hub.measures + Self.network(report) + Self.repairs(report.traffic)
      + Self.queues(switchboard, report) + [
        Measure(
          "parley_store_commit_seconds", .histogram, "How long writing to the disk took.",
          [.init([], .histogram(commits))])
      ]
  }

  private func memberMeasures() async -> [Measure] {
    let channels = await channels()
    let members = channels.flatMap { channel in
      [("online", channel.onlineCount), ("offline", channel.memberCount - channel.onlineCount)].map { status, count in
        ([(name: "channel", value: channel.name.text), (name: "status", value: status)], UInt64(clamping: count))
      }
    }
    return [
      .counts("parley_channels", .gauge, "Channels this node is in.", [([], UInt64(channels.count))]),
      .counts("parley_members", .gauge, "Members of a channel, this node included.", members),
    ]
  }

  private static func network(_ report: LinksReport) -> [Measure] {
    let traffic = report.traffic
    func way(_ sent: UInt64, _ heard: UInt64) -> [([(name: String, value: String)], UInt64)] {
      [([("direction", "sent")], sent), ([("direction", "received")], heard)]
    }
    func purposes(_ direction: String, _ chat: UInt64, _ media: UInt64) -> [([(name: String, value: String)], UInt64)] {
      [("messages", chat), ("media", media)].map { purpose, count in
        ([(name: "direction", value: direction), (name: "purpose", value: purpose)], count)
      }
    }
    return [
      .counts("parley_sessions", .gauge, "Encrypted sessions that stand.", [([], UInt64(report.sessions.count))]),
      .counts(
        "parley_sessions_opened_total", .counter, "Sessions opened, those for files included.",
        [([], traffic.sessionsOpened)]),
      .counts("parley_dials_failed_total", .counter, "Connections that came to nothing.", [([], traffic.dialsFailed)]),
      .counts(
        "parley_datagrams_total", .counter, "UDP datagrams.", way(traffic.datagramsSent, traffic.datagramsHeard)),
      .counts(
        "parley_datagram_bytes_total", .counter, "Bytes of UDP datagrams without the headers of UDP and IP.",
        way(traffic.datagramBytesSent, traffic.datagramBytesHeard)),
      .counts(
        "parley_session_bytes_total", .counter, "Bytes of sessions, by what they were for.",
        purposes("sent", traffic.chatBytesSent, traffic.mediaBytesSent)
          + purposes("received", traffic.chatBytesHeard, traffic.mediaBytesHeard)),
    ]
  }

  private static func repairs(_ traffic: Traffic) -> [Measure] {
    [
      .counts(
        "parley_repair_questions_total", .counter, "Questions for entries that were missed.",
        [([("direction", "asked")], traffic.wantsSent), ([("direction", "answered")], traffic.wantsHeard)]),
      .counts(
        "parley_repair_entries_total", .counter, "Entries that came or went in answer to such questions.",
        [([("direction", "received")], traffic.entriesRepaired), ([("direction", "sent")], traffic.entriesServed)]),
    ]
  }

  private static func queues(_ switchboard: Switchboard, _ report: LinksReport) -> [Measure] {
    let queues = [
      ("links", switchboard.links.count), ("login", switchboard.login.count),
      ("membership", switchboard.membership.count), ("messaging", switchboard.messaging.count),
      ("media", switchboard.media.count), ("store", switchboard.store.count), ("sync", switchboard.sync.count),
      ("handshakes", report.halfOpenCount),
    ]
    let refused = report.sendFailures.values.reduce(0) { $0 + $1.count }
    return [
      .counts(
        "parley_queue_size", .gauge, "What waits inside the node, by for whom.",
        queues.map { ([("queue", $0)], UInt64(clamping: $1)) }),
      .counts(
        "parley_dropped_total", .counter, "What was let go, by why.",
        [
          ([("reason", "messaging_behind")], report.traffic.datagramsDropped),
          ([("reason", "foreign_channel")], report.traffic.datagramsForeign),
          ([("reason", "send_refused")], refused),
        ]),
    ]
  }
}

extension Hub {
  /// Of events that were told.
  struct Counts {
    var ownMessages: UInt64 = 0
    var othersMessages: UInt64 = 0
    var excesses: UInt64 = 0

    mutating func note(_ event: NodeEvent, _ me: PeerID) {
      switch event {
      case .message(let message) where message.sender == me: ownMessages += 1
      case .message: othersMessages += 1
      case .memberOverLimit: excesses += 1
      default: break
      }
    }
  }

  /// What was told to applications.
  var measures: [Measure] {
    state.withLock { state in
      [
        .counts(
          "parley_messages_total", .counter, "Messages stored since the start, by whose.",
          [([("by", "self")], state.counts.ownMessages), ([("by", "others")], state.counts.othersMessages)]),
        .counts(
          "parley_messages_malformed_total", .counter, "Messages that were shown to nobody because they are malformed.",
          [([], UInt64(clamping: state.malformedCount))]),
        .counts(
          "parley_over_limit_total", .counter, "Times a member did more than a member may.",
          [([], state.counts.excesses)]),
        .counts(
          "parley_subscribers", .gauge, "Readers of events.", [([], UInt64(clamping: state.subscribers.count))]),
      ]
    }
  }
}
