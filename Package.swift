// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
]

/// A C library of the system: module map and shim.h under Sources/<name>.
func system(_ name: String, _ pkgConfig: String?, apt: String) -> Target {
  .systemLibrary(name: name, path: "Sources/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

/// A room of the house. Target names carry the prefix so that no user's own `Store` collides; folders stay short.
func room(_ name: String, _ dependencies: [String]) -> Target {
  .target(
    name: "Parley\(name)", dependencies: dependencies.map { .init(stringLiteral: $0) },
    path: "Sources/\(name)",
    exclude: ["Wire": ["Wire.docc"], "LocalAPI": ["LocalAPI.docc", "Page"]][name] ?? [], swiftSettings: strict
  )
}

func tests(_ name: String, _ dependencies: [String]) -> Target {
  .testTarget(
    name: "\(name)Tests", dependencies: dependencies.map { .init(stringLiteral: $0) },
    path: "Tests/\(name)Tests", swiftSettings: strict)
}

let package = Package(
  name: "Parley",
  products: [
    .library(name: "Parley", targets: ["Parley"]),
    .library(name: "ParleyTesting", targets: ["ParleySimulation"]),
    .executable(name: "parley", targets: ["ParleyApp"]),
  ],
  targets: [
    system("CSodium", "libsodium", apt: "libsodium-dev"),
    system("CSQLite", "sqlite3", apt: "libsqlite3-dev"),
    system("CUV", "libuv", apt: "libuv1-dev"),
    system("CJansson", "jansson", apt: "libjansson-dev"),
    system("CUTF8Proc", nil, apt: "libutf8proc-dev"),
    // Loaded when first used.
    system("CICU", nil, apt: "libicu-dev"),
    system("CMicroHTTPD", "libmicrohttpd", apt: "libmicrohttpd-dev"),
    // Loaded when first used (see the shims), so no pkg-config: it would link them.
    system("CCrypto", nil, apt: "libssl-dev"),
    system("CCurl", nil, apt: "libcurl4-openssl-dev"),
    system("CEdit", nil, apt: "libedit-dev"),
    system("CQREncode", nil, apt: "libqrencode-dev"),
    .systemLibrary(name: "CLinux", path: "Sources/CLinux"),

    room("Vocabulary", ["CUTF8Proc", "CICU"]),
    room("Hashing", ["ParleyVocabulary", "CSodium", "CCrypto"]),
    room("Wire", ["ParleyVocabulary", "ParleyHashing", "CJansson"]),
    room("Transport", ["ParleyVocabulary"]),
    room("Sealing", ["ParleyVocabulary", "ParleyHashing", "CSodium"]),
    room("Machines", ["ParleyVocabulary", "ParleyWire", "ParleyHashing"]),
    room("Store", ["ParleyVocabulary", "CSQLite"]),
    room("Sockets", ["ParleyTransport", "ParleyVocabulary", "CUV"]),
    room("Disk", ["ParleyVocabulary", "ParleyHashing", "ParleyWire", "CLinux"]),
    room("Pictures", ["ParleyVocabulary", "CLinux"]),
    room("Hooks", ["ParleyVocabulary", "CCurl", "CLinux"]),
    room(
      "Actors",
      [
        "ParleyMachines", "ParleyWire", "ParleyHashing", "ParleySealing", "ParleyTransport", "ParleyStore",
        "ParleyDisk", "ParleyVocabulary",
      ]),
    .target(
      name: "Parley",
      dependencies: [
        "ParleyActors", "ParleyMachines", "ParleyWire", "ParleyHashing", "ParleySealing", "ParleyTransport",
        "ParleySockets", "ParleyStore", "ParleyDisk", "ParleyPictures", "ParleyHooks", "ParleyVocabulary",
        "CQREncode",
      ], path: "Sources/Parley", swiftSettings: strict),
    // The page's files, embedded as they lie in Sources/LocalAPI/Page.
    .target(name: "CPage", path: "Sources/CPage"),
    room("LocalAPI", ["Parley", "CMicroHTTPD", "CPage"]),
    room(
      "Simulation",
      ["ParleyMachines", "ParleyWire", "ParleyHashing", "ParleySealing", "ParleyTransport", "ParleyVocabulary"]),
    .executableTarget(
      name: "ParleySimulate", dependencies: ["ParleySimulation", "ParleyVocabulary"], path: "Sources/Simulate",
      swiftSettings: strict),
    .executableTarget(
      name: "ParleyApp", dependencies: ["Parley", "ParleyLocalAPI", "CCurl", "CEdit"], path: "Sources/App",
      swiftSettings: strict),
    .executableTarget(
      name: "ParleyBenchmark", dependencies: ["Parley"], path: "Sources/Benchmark", swiftSettings: strict),

    // A peer that speaks the protocol and means ill, for Tests/LANTests.
    .executableTarget(
      name: "ParleyHostile", dependencies: ["ParleySealing", "ParleyWire", "ParleyHashing", "ParleyVocabulary"],
      path: "Tests/Hostile", swiftSettings: strict),

    tests("Vocabulary", ["ParleyVocabulary"]),
    tests("Store", ["ParleyStore", "ParleyVocabulary"]),
    tests("Sockets", ["ParleySockets", "ParleyTransport", "ParleyVocabulary"]),
    tests(
      "Actors",
      [
        "ParleyActors", "ParleyMachines", "ParleySealing", "ParleyStore", "ParleyTransport", "ParleyWire",
        "ParleyVocabulary", "ParleyDisk", "ParleyHashing",
      ]),
    tests("Parley", ["Parley", "ParleyVocabulary", "ParleyWire"]),
    tests("Hooks", ["ParleyHooks"]),
    tests("LocalAPI", ["ParleyLocalAPI", "Parley"]),
    tests("App", ["ParleyApp", "ParleyLocalAPI", "Parley"]),
    tests("Tidy", []),
    tests("Hashing", ["ParleyHashing", "ParleyVocabulary"]),
    tests("Sealing", ["ParleySealing", "ParleyHashing", "ParleyVocabulary", "CSodium"]),
    tests("Vectors", ["ParleyWire", "ParleySealing", "ParleyHashing", "ParleyVocabulary"]),
    tests("Wire", ["ParleyWire", "ParleyHashing", "ParleyVocabulary"]),
    tests("Machines", ["ParleyMachines", "ParleyWire", "ParleyHashing", "ParleyVocabulary"]),
    tests("Disk", ["ParleyDisk", "ParleyWire", "ParleyHashing", "ParleyVocabulary"]),
    tests("Pictures", ["ParleyPictures", "ParleyVocabulary", "CLinux"]),
    tests("Simulation", ["ParleySimulation", "ParleyMachines", "ParleyWire", "ParleyVocabulary"]),
  ]
)
