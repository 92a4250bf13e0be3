import ParleyVocabulary
import Testing

@testable import ParleyHashing

/// The expected roots were computed with Python's hashlib straight from the definition in BEP 52: the SHA-256 of every
/// 16 KiB of the whole file, then 32 zero bytes up to the balanced width, then pairwise up to one. Byte i of a file is
/// (31 i + ⌊i / 256⌋) mod 256.
@Suite struct MediaTreeTests {
  static func file(_ byteCount: Int) -> [UInt8] {
    (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ ($0 >> 8)) }
  }

  /// Also over its own input, as the tree does it.
  @Test(arguments: [0, 1, 55, 56, 64, 16_384]) func withoutLibcryptoHashesAreTheSame(_ byteCount: Int) {
    Self.file(byteCount).withUnsafeBytes { #expect(SHA256(library: nil).hash($0) == SHA256().hash($0)) }
    var pair = Self.file(64)
    pair.withUnsafeMutableBytes { SHA256(library: nil).hash(UnsafeRawBufferPointer($0), to: $0.baseAddress!) }
    #expect(Hash32(bytes: pair[0..<32]) == MediaTree.sha256(Self.file(64)))
  }

  static let pieceHashOfOneByteAtTheEnd = "00ae8802da7a65746a6910e91fa8b0557ef1dc2e1be91e502985c019da71f051"

  @Test(arguments: [
    (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
    (16_384, "83a5ee9c1db0b82ae94961fee75a195f6104c65235c07590569657709c1316e8"),
    (16_385, "86133d0e4897ec6696772fc802c34ef508d516763aad75b6556d199f77909455"),
    (49_157, "df7b11b30e33b7d930e11f1b9df6cf713a575ca221eace577659b5345a66cb34"),
    (1_048_575, "e444a15e2090e39f30e6f0778249eacb573077902ccbd845ffa133b6c958714a"),
    (1_048_576, "b780bdbd9cebf2ee4108586a916064ea1dc8a1892503ee8f56f429b5e1d451e9"),
    (1_048_577, "2e4ca07f6ee316d2c8bf78fc00c1efc1e0998c9978ed40475c2aace5b84cb5f5"),
    (3_145_728, "e5956c453d8be5931dace8c1e131430912c678d3eff02a3344800e8baa5c520f"),
    (5_255_225, "eb73a0cd5fc1b65005744a558e9753ee9db35bfb3ef86780f0c5c23d1837920c"),
  ])
  func rootsAreBitTorrentsOwn(_ byteCount: Int, _ root: String) {
    let file = Self.file(byteCount)
    let pieceCount = Int(MediaTree.pieceCount(byteCount: UInt64(byteCount)))
    file.withUnsafeBytes { file in
      let pieces = stride(from: 0, to: byteCount, by: Limit.mediaPieceByteCount).map { start in
        UnsafeRawBufferPointer(rebasing: file[start..<min(start + Limit.mediaPieceByteCount, byteCount)])
      }
      #expect(pieces.count == pieceCount)
      let hashes = pieces.map { MediaTree.pieceHash(of: $0, isOnlyPiece: pieceCount == 1) }
      #expect(MediaTree.root(pieceHashes: hashes, byteCount: UInt64(byteCount)).bytes.hex == root)
      let fromLeaves = pieces.map {
        MediaTree.pieceHash(leafHashes: MediaTree.leafHashes(of: $0), isOnlyPiece: pieceCount == 1)
      }
      #expect(fromLeaves == hashes)
    }
  }

  @Test func aShortPieceIsPaddedToAWholeOneUnlessItIsTheFile() {
    let last = Array(Self.file(1_048_577).suffix(1))
    last.withUnsafeBytes { last in
      #expect(MediaTree.pieceHash(of: last, isOnlyPiece: false).bytes.hex == Self.pieceHashOfOneByteAtTheEnd)
      #expect(MediaTree.pieceHash(of: last, isOnlyPiece: true) == MediaTree.leafHash(last))
    }
  }

  @Test func whatLiesBeyondTheEndIsATreeOfZeros() {
    let hash = "d88ddfeed400a8755596b21942c1497e114c302e6118290f91e6772976041fa1"
    #expect(MediaTree.emptyPieceHash.bytes.hex == hash)
    #expect(MediaTree.root(pieceHashes: [], byteCount: 0).bytes == [UInt8](repeating: 0, count: 32))
  }

  @Test(
    arguments: [
      (0, 0), (1, 1), (1_048_576, 1), (1_048_577, 2), (UInt64.max, (1 << 44) as UInt64),
    ] as [(UInt64, UInt64)])
  func piecesAreCountedWithoutOverflow(_ byteCount: UInt64, _ pieceCount: UInt64) {
    #expect(MediaTree.pieceCount(byteCount: byteCount) == pieceCount)
  }

  /// FIPS 180-4's example of one block.
  @Test func sha256OfABC() {
    let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    #expect(MediaTree.sha256(Array("abc".utf8)).bytes.hex == hash)
    #expect(
      MediaTree.sha256([]).bytes.hex == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
  }
}
