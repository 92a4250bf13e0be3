/// Every limit of the protocol, unit last. Checked before anything is allocated.
public enum Limit {
  /// A datagram, header and tag included: IPv6's minimum MTU (RFC 8200 section 5) less IPv6 and UDP headers.
  public static let datagramByteCountMax = 1_232
  /// A sealed session payload, tag included. Under 32 KB whichever way one counts.
  public static let sealedPayloadByteCountMax = 32_000
  /// A message's JSON.
  public static let messageByteCountMax = 30_000
  /// An encoded entry with its bodies; fits one session payload.
  public static let entryByteCountMax = 31_600
  public static let messagesPerEntryMax = 256
  public static let messageIDByteCountMax = 64
  public static let channelNameByteCountMax = 64
  public static let displayNameByteCountMax = 64
  public static let fileNameByteCountMax = 255
  /// A login token, before anything of it is read.
  public static let tokenByteCountMax = 4_096
  public static let jsonDepthMax = 16
  /// Counters (numbers, Lamport times, incarnations) are below this; larger is malformed. Also what a varint can hold
  /// (RFC 9000 section 16).
  public static let counterMax: UInt64 = (1 << 62) - 1
  /// How far ahead of ours a received Lamport time may be and still move our clock.
  public static let lamportAheadMax: UInt64 = 1 << 20
  /// A leaf of the media tree, and a block on the wire (BEP 52).
  public static let mediaBlockByteCount = 16_384
  /// A piece: what is verified and written at once.
  public static let mediaPieceByteCount = 1 << 20
  public static let blocksPerPiece = 64
  public static let manifestByteCountMax = 16 << 20
  public static let channelsPerNodeMax = 64
  public static let membersPerChannelMax = 4_096
}
