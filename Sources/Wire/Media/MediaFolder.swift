extension MediaManifest {
  /// The MIME type of a manifest, and of a message, that stands for a folder: a folder of one file differs from that
  /// file by it alone. (shared-mime-info's name for folders; there is no registered one.)
  package static let folderType = "inode/directory"

  /// Whether what it stands for is a folder with files in it, rather than one file. A manifest of several files is a
  /// folder whatever it calls itself.
  package var isFolder: Bool { mimeType == Self.folderType || files.count != 1 || files[0].path.count != 1 }
}
