import CLinux
import Glibc

/// Landlock (Linux 5.13): what a thread may do to the file system.
enum Confined {
  static var isPossible: Bool { parley_landlock_version() > 0 }

  /// Runs `body` on a thread that cannot make, write, rename or remove anything but below `folder`, whatever names it
  /// is tricked into, and waits for it. A restriction holds for a thread's whole life, and the threads of the disk
  /// serve targets that are not known when they start: so each change of names gets a short one of its own (some
  /// 50 µs), while bytes are written through descriptors that it leaves open.
  /// Without Landlock, or where a sandbox forbids it, the body runs as it is: below `folder` still only through
  /// `openBeneath`.
  static func run<T>(to folder: Int32, _ body: () throws(DiskError) -> T) throws(DiskError) -> T {
    guard isPossible else { return try body() }
    var result: Result<T, DiskError>?
    withoutActuallyEscaping(body) { body in
      let work = Work(folder: folder) {
        do throws(DiskError) { result = .success(try body()) } catch { result = .failure(error) }
      }
      work.run()
    }
    return try result!.get()
  }

  /// Unchecked Sendable: one thread hands it to another and waits for that one's end.
  private final class Work: @unchecked Sendable {
    let folder: Int32
    let body: () -> Void

    init(folder: Int32, body: @escaping () -> Void) {
      self.folder = folder
      self.body = body
    }

    func run() {
      var thread = pthread_t()
      let box = Unmanaged.passRetained(self)
      let code = pthread_create(
        &thread, nil,
        { argument in
          let work = Unmanaged<Work>.fromOpaque(argument!).takeRetainedValue()
          // On failure it is not confined; see above.
          _ = parley_confine_thread(work.folder)
          work.body()
          return nil
        }, box.toOpaque())
      guard code == 0 else {
        box.release()
        return body()
      }
      pthread_join(thread, nil)
    }
  }
}
