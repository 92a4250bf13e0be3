import Glibc
import ParleyVocabulary
import Testing

@testable import ParleyStore

/// A real file system that is full or read-only: 1 MiB of memory, seen by one thread only.
struct SmallDiskTests {
  @Test(.enabled("mounting needs root, with the right to do so") { canMount() })
  func aFullAndThenReadOnlyDisk() throws {
    let folder = Folder()
    let complaints = try #require(onPrivateMount(at: folder.path, options: "size=1m") { Self.fill(folder.path) })
    #expect(complaints == [])
    #expect(folder.names == [], "the mount was the other thread's alone")
  }

  /// Expectations made on another thread do not find their test, so this returns what was not as it should be.
  private static func fill(_ folder: String) -> [String] {
    let path = folder + "/store.sqlite"
    let body = [UInt8](repeating: 1, count: 30_000)
    var stored: UInt64 = 0
    do {
      write([UInt8](repeating: 0, count: 200_000), to: folder + "/ballast")
      let store = try Store(path: path)
      var refusals = 0
      while refusals < 3 && stored < 100 {
        do throws(StoreError) {
          try store.apply([.entry(entry(stored + 1, bytes: body)), .entry(entry(stored + 2, bytes: body))])
          stored += 2
        } catch {
          guard case .full(path, _) = error else { return ["\(error)"] }
          refusals += 1
        }
      }
      guard refusals == 3, stored > 0 else { return ["\(stored) entries, \(refusals) refusals"] }
      guard try holds(store, stored) else { return ["a refused batch left something"] }
      unlink(folder + "/ballast")
      guard try store.add([entry(stored + 1, bytes: body)]) == [stored + 1] else { return ["a wrong cursor"] }
      stored += 1
    } catch { return ["\(error)"] }
    // A process that another test starts just then holds what is open here until it has become its program.
    var triesLeft = 1_000_000
    while mount(nil, folder, nil, UInt(MS_REMOUNT | MS_RDONLY), nil) != 0 {
      guard errno == EBUSY, triesLeft > 0 else { return ["remounting: \(String(cString: strerror(errno)))"] }
      triesLeft -= 1
      sched_yield()
    }
    do throws(StoreError) {
      _ = try Store(path: path)
      return ["a store was opened on a read-only disk"]
    } catch {
      guard case .readOnly(path, _) = error else { return ["\(error)"] }
    }
    mount(nil, folder, nil, UInt(MS_REMOUNT), nil)
    do {
      let store = try Store(path: path)
      return try store.setAside == nil && holds(store, stored) ? [] : ["not everything came back"]
    } catch { return ["\(error)"] }
  }

  private static func holds(_ store: Store, _ count: UInt64) throws -> Bool {
    try store.logs(in: channel(1)).map(\.contiguous) == [count] && store.lastCursor == count
      && UInt64(store.entriesAfter(cursor: 0, in: nil, limit: .max).count) == count
  }
}

private final class Job {
  let path: String
  let options: String
  let body: () -> [String]
  var result: [String]?

  init(path: String, options: String, body: @escaping () -> [String]) {
    self.path = path
    self.options = options
    self.body = body
  }

  func run() {
    // unshare(2), which the Glibc module lacks, with CLONE_NEWNS: this thread alone gets mounts of its own.
    guard let symbol = dlsym(nil, "unshare") else { return }
    let unshare = unsafeBitCast(symbol, to: (@convention(c) (Int32) -> Int32).self)
    guard unshare(0x0002_0000) == 0 else { return }
    guard mount("none", "/", nil, UInt(MS_REC | MS_PRIVATE), nil) == 0 else { return }
    guard mount("none", path, "tmpfs", 0, options) == 0 else { return }
    result = body()
  }
}

private func canMount() -> Bool {
  let folder = Folder()
  return onPrivateMount(at: folder.path, options: "size=1m") { [] } != nil
}

/// Nil when the system does not allow it: to users other than root, and to root in some containers.
private func onPrivateMount(at path: String, options: String, body: @escaping () -> [String]) -> [String]? {
  let job = Job(path: path, options: options, body: body)
  var thread = pthread_t()
  let started = pthread_create(
    &thread, nil,
    { argument in
      Unmanaged<Job>.fromOpaque(argument!).takeUnretainedValue().run()
      return nil
    }, Unmanaged.passUnretained(job).toOpaque())
  guard started == 0 else { return nil }
  pthread_join(thread, nil)
  return job.result
}
