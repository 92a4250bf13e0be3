import ParleyDisk
import ParleyMachines
import ParleyVocabulary
import ParleyWire

/// Why a download ended without its file.
package enum DownloadEnd: Error, Sendable {
  case disk(DiskError)
  case media(DownloadFailure)
  /// Nobody has it, or nobody who has it gives it: what the last of them did, if any.
  case noSource(SourceFault?)
  case cancelled
  /// To go on when somebody says so.
  case paused
  /// A reader wants what begins past the end.
  case outOfRange(byteCount: UInt64)
  case stopped
}

package enum DownloadNews: Sendable {
  case progress(DownloadProgress)
  /// Of an order for contents alone: the end.
  case contents(MediaManifest)
  case finished(path: String)
  /// So many bytes are kept, and the next download of it to the same folder goes on from there.
  case failed(DownloadEnd, keptByteCount: UInt64, byteCount: UInt64)
}
