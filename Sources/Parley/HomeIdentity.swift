import ParleySealing
import ParleyVocabulary

/// Moving an identity to another home, as one file that a passphrase seals. In it are the identity, the display name
/// and the secrets of channels, not the history. One identity runs in one place: a node on the old home ends with
/// `.aborted` when the new one is used, and its home is retired.
///
/// Both calls block for the disk and some tenths of a second, with 64 MiB, for each passphrase, and throw
/// `.profileInUse` while a node runs on the home, and `.badPassphrase` for a passphrase that is empty or longer than
/// 1,024 bytes.
public enum HomeIdentity {
  /// Bytes of an export at most.
  public static let byteCountMax = IdentityExport.byteCountMax

  /// The file's bytes. `homePassphrase` is that of the home, when it has one. From now on a node on this home says that
  /// it was exported.
  public static func export(
    home: String, homePassphrase: [UInt8]? = nil, filePassphrase: [UInt8]
  ) throws(ParleyError) -> [UInt8] {
    do throws(ProfileError) {
      let profile = try Profile.open(home: home, passphrase: homePassphrase)
      return try profile.export(filePassphrase)
    } catch { throw ParleyError(error, home: home) }
  }

  /// Makes the identity in `file` that of a home that has none, and returns who it is; `path` names the file in errors.
  /// Throws `.homeHasIdentity`, `.wrongHomePassphrase` (of the file), `.profileDamaged`.
  @discardableResult
  public static func importing(
    _ file: [UInt8], path: String, filePassphrase: [UInt8], home: String
  ) throws(ParleyError) -> PeerID {
    do throws(ProfileError) {
      return try Profile.importing(file, from: path, filePassphrase, home: home)
    } catch {
      if case .wrongPassphrase = error { throw .wrongHomePassphrase(home: path) }
      throw ParleyError(error, home: home)
    }
  }
}
