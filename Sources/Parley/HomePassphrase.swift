import ParleyActors
import ParleySealing
import ParleyStore
import ParleyVocabulary

/// The passphrase of a home, for as long as no node runs on it. With one, the identity, the secrets of channels, what
/// was said, the names of people and the index of shared files are sealed on the disk: nobody can use a copy of the
/// home without it. Files that were shared or downloaded, previews, and who spoke when to whom are not.
///
/// Every call blocks for the disk and for some tenths of a second, with 64 MiB, for each passphrase. Throws
/// `.profileInUse` while a node runs on the home, `.wrongHomePassphrase`, `.homePassphraseMismatch`, `.badPassphrase`
/// for one that is empty or longer than 1,024 bytes, `.profileDamaged` when the disk refuses. What is cut short is gone
/// on with by the same call or by the next start of a node.
public enum HomePassphrase {
  /// Whether the home has one; also while a node runs. False where there is no home.
  public static func isSet(home: String) throws(ParleyError) -> Bool {
    do { return try Profile.hasPassphrase(home: home) } catch { throw ParleyError(error, home: home) }
  }

  /// Gives the home its first. Takes as long as writing all that is kept twice, and as much room on the disk.
  public static func set(_ passphrase: [UInt8], home: String) throws(ParleyError) {
    let profile = try open(home, nil)
    do { try profile.setPassphrase(passphrase) } catch { throw ParleyError(error, home: home) }
    let isCompactionDue: Bool
    do throws(StoreError) {
      guard let keys = profile.restKeys else { preconditionFailure("a passphrase was set") }
      let store = try Store(
        path: profile.storePath, checks: StoreActor.checks(profile), seal: keys)
      isCompactionDue = store.isCompactionDue
    } catch { throw .profileDamaged(path: home, reason: error.description) }
    guard !isCompactionDue else {
      throw .profileDamaged(
        path: home,
        reason:
          "there is no room for a copy of the message store: it is sealed, and what was plain may still be read in "
          + "unused parts of it; make room, and the next start of a node puts that right")
    }
  }

  /// Another in its place. One small file is written anew; what was sealed stays sealed under the same keys, so a copy
  /// of the home from before still opens with the old one.
  public static func change(from old: [UInt8], to new: [UInt8], home: String) throws(ParleyError) {
    let profile = try open(home, old)
    do { try profile.changePassphrase(to: new) } catch { throw ParleyError(error, home: home) }
  }

  /// Everything is plain afterwards, as before there was one.
  public static func remove(_ passphrase: [UInt8], home: String) throws(ParleyError) {
    let profile = try open(home, passphrase)
    // Removing was cut short after the store was plain.
    guard let keys = profile.restKeys else { return }
    do throws(StoreError) { try Store.unseal(path: profile.storePath, seal: keys) } catch {
      throw .profileDamaged(path: home, reason: error.description)
    }
    do { try profile.removePassphrase(passphrase) } catch { throw ParleyError(error, home: home) }
  }

  private static func open(_ home: String, _ passphrase: [UInt8]?) throws(ParleyError) -> Profile {
    do { return try Profile.open(home: home, passphrase: passphrase) } catch {
      // Without one given, what is meant is that there is one already.
      if case .passphraseNeeded = error { throw .homePassphraseMismatch(home: home, hasPassphrase: true) }
      throw ParleyError(error, home: home)
    }
  }
}

extension Profile {
  var storePath: String { path + "/store.sqlite" }
}

extension StoreActor {
  static func checks(_ profile: Profile) -> SalvageChecks {
    checks(me: profile.identity.peerID, channels: ((try? profile.loadChannels()) ?? []).map(\.id))
  }
}
