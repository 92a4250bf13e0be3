import Glibc

/// By which a part file is known again after a crash: the nanoseconds of its time of change, drawn from its name and
/// set after every write of ours. Whoever else writes to it leaves another number there, and so does a crash in the
/// middle of a write; then what is in it is hashed before it is believed. The seconds are those of the clock.
struct PartMark {
  /// A multiple of 1,000, since some file systems keep no less.
  private let nanoseconds: Int

  init(partName: String) {
    nanoseconds = partName.utf8.reduce(1) { ($0 * 31 + Int($1)) % 999_983 } * 1_000
  }

  func isOn(_ status: stat) -> Bool { status.st_mtim.tv_nsec == nanoseconds }

  /// Where the file system refuses, what is in the file is hashed again.
  func put(on file: Int32) { set(file, nanoseconds) }

  func remove(from file: Int32) { set(file, nanoseconds + 1) }

  private func set(_ file: Int32, _ nanoseconds: Int) {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    futimens(file, [now, timespec(tv_sec: now.tv_sec, tv_nsec: nanoseconds)])
  }
}
