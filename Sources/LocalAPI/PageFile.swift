import CPage

/// A file of the page, as it lies in the folder Page: the executable holds them all.
struct PageFile: Sendable {
  let name: String
  let type: String
  /// Unchecked by the compiler: bytes of the executable, which nobody writes to.
  nonisolated(unsafe) let bytes: UnsafeRawBufferPointer

  static let all: [PageFile] = {
    var files: [PageFile] = []
    while let file = parley_page_file_at(files.count) {
      files.append(
        PageFile(
          name: String(cString: file.pointee.name), type: String(cString: file.pointee.type),
          bytes: UnsafeRawBufferPointer(start: file.pointee.bytes, count: file.pointee.byte_count)))
    }
    return files
  }()

  /// The description of the API (OpenAPI 3.1).
  static var openAPI: String {
    String(decoding: all.first { $0.name == "openapi.json" }!.bytes, as: UTF8.self)
  }

  /// By its address.
  static func at(_ path: String) -> PageFile? {
    path == "/" ? all.first { $0.name == "index.html" } : all.first { "/" + $0.name == path }
  }
}
