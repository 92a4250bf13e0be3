import Testing

/// The test vectors of two other implementations, cacophony and snow, for the protocols that sessions are built from.
struct NoiseVector: Sendable, CustomTestStringConvertible {
  let name: String
  let origin: String
  let prologue: String
  let initiatorStatic: String?
  let initiatorEphemeral: String
  let responderStatic: String?
  let responderEphemeral: String
  let handshakeHash: String?
  /// Payload and ciphertext; the two sides take turns, the initiator first.
  let messages: [(payload: String, ciphertext: String)]

  var testDescription: String { "\(name) of \(origin)" }

  static let all: [NoiseVector] = [
    NoiseVector(
      name: "Noise_NN_25519_AESGCM_SHA256", origin: "cacophony",
      prologue: "4a6f686e2047616c74",
      initiatorStatic: nil,
      initiatorEphemeral: "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
      responderStatic: nil,
      responderEphemeral: "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
      handshakeHash: "6301958d25cd7d1ffe6ad7d0ca2ad284b4e478d9acd9198f7750432d225043d0",
      messages: [
        (
          "4c756477696720766f6e204d69736573",
          "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79444c756477696720766f6e204d69"
            + "736573"
        ),
        (
          "4d757272617920526f746862617264",
          "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843934ff73eebb9d930ebf62b8e4d"
            + "b8133ca936872b5551efd7c9989c646d8cf0"
        ),
        (
          "462e20412e20486179656b",
          "8d372b94914e80018211a344b8b1c5a2869492a0db46990c0362f3"
        ),
        (
          "4361726c204d656e676572",
          "e183b0abd55550f9955fb05476d988c6f27628d7bbde111c39ccbc"
        ),
        (
          "4a65616e2d426170746973746520536179",
          "167293a79ad6a647114c4f4eb55bdf713a0d44ae48765c07fc4e57743100825021"
        ),
        (
          "457567656e2042f6686d20766f6e2042617765726b",
          "2b67a18ae246069c51687bee89141041d9d35a821f852975d169a4f80f75c735807a1fd157"
        ),
      ]),
    NoiseVector(
      name: "Noise_NN_25519_ChaChaPoly_SHA256", origin: "cacophony",
      prologue: "4a6f686e2047616c74",
      initiatorStatic: nil,
      initiatorEphemeral: "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
      responderStatic: nil,
      responderEphemeral: "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
      handshakeHash: "9223fec1b892ec9d0dc2fb3bbeb261f170d1ea679f9c44ccf34aa131b4f5d97e",
      messages: [
        (
          "4c756477696720766f6e204d69736573",
          "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79444c756477696720766f6e204d69"
            + "736573"
        ),
        (
          "4d757272617920526f746862617264",
          "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843a0ff96bdf86b579ef7dbf94e81"
            + "2a7470b903c20a85a87e3a1fe863264ae547"
        ),
        (
          "462e20412e20486179656b",
          "eb1a3e3d80c1792b1bb9cb0e1382f8d8322bfb1ca7c4c8517bb686"
        ),
        (
          "4361726c204d656e676572",
          "c781b198d2a974eb1da2c7d518c000cf6396de87ca540963c03713"
        ),
        (
          "4a65616e2d426170746973746520536179",
          "c77048eb6919fdfe8fe45842bfc5b8d1ff50d1e20c717453ccdfe6176d805b996d"
        ),
        (
          "457567656e2042f6686d20766f6e2042617765726b",
          "61834d7069dcfb7a1adf8d5ac910f83fa04c73a67789895c6f5f995c5db2ce88e49b124178"
        ),
      ]),
    NoiseVector(
      name: "Noise_XX_25519_AESGCM_SHA256", origin: "cacophony",
      prologue: "4a6f686e2047616c74",
      initiatorStatic: "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
      initiatorEphemeral: "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
      responderStatic: "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
      responderEphemeral: "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
      handshakeHash: "1b7aefb1125762aa21a252890d00af54519638b76437444538f9a52f21e2e0dc",
      messages: [
        (
          "4c756477696720766f6e204d69736573",
          "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79444c756477696720766f6e204d69"
            + "736573"
        ),
        (
          "4d757272617920526f746862617264",
          "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843757117acceb05bd7a45733bc22"
            + "015c97a9d0cbaf41b80446d5988ff5127235d76b79eade70f473d6a4ef521fdcbeda5340d01e028ba793fc059f"
            + "2724a83af05f12dda0448a7621a926b379a92477fd"
        ),
        (
          "462e20412e20486179656b",
          "c90f1cf77eba4e50edb038991565e36c9758943a989229b6051244dc4fbecb6946744b401af2ee1a5881b65fbb"
            + "87fd07cb6a328ececc9ce6ce84c399dc332d4fd521fa4bb7f467ce909395"
        ),
        (
          "4361726c204d656e676572",
          "bc3fa77f6aca3e8466d7dc6bea10013e88a6a29add5132b461806c"
        ),
        (
          "4a65616e2d426170746973746520536179",
          "250b01074cdfe0df2ecf8ccbf1737b15a2ddb5b52fd9a396604e9c793cee3b3bb9"
        ),
        (
          "457567656e2042f6686d20766f6e2042617765726b",
          "449d4d433b3cdc3d02bf6fc881774b9df54366ebcffb9689bb13f14709822cd7ef42bcdb4d"
        ),
      ]),
    NoiseVector(
      name: "Noise_XX_25519_ChaChaPoly_SHA256", origin: "cacophony",
      prologue: "4a6f686e2047616c74",
      initiatorStatic: "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
      initiatorEphemeral: "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
      responderStatic: "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
      responderEphemeral: "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
      handshakeHash: "c8e5f64e846193be2a834104c2a009868d6c9f3bd3c186299888b488b2f1f58e",
      messages: [
        (
          "4c756477696720766f6e204d69736573",
          "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79444c756477696720766f6e204d69"
            + "736573"
        ),
        (
          "4d757272617920526f746862617264",
          "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f14480884381cbad1f276e038c48378ffce2"
            + "b65285e08d6b68aaa3629a5a8639392490e5b9bd5269c2f1e4f488ed8831161f19b7815528f8982ffe09be9b5c"
            + "412f8a0db50f8814c7194e83f23dbd8d162c9326ad"
        ),
        (
          "462e20412e20486179656b",
          "c7195ffacac1307ff99046f219750fc47693e23c3cb08b89c2af808b444850a80ae475b9df0f169ae80a89be08"
            + "65b57f58c9fea0d4ec82a286427402f113e4b6ae769a1d95941d49b25030"
        ),
        (
          "4361726c204d656e676572",
          "96763ed773f8e47bb3712f0e29b3060ffc956ffc146cee53d5e1df"
        ),
        (
          "4a65616e2d426170746973746520536179",
          "3e40f15f6f3a46ae446b253bf8b1d9ffb6ed9b174d272328ff91a7e2e5c79c07f5"
        ),
        (
          "457567656e2042f6686d20766f6e2042617765726b",
          "eb3f3515110702e047a6c9da4478b6ead94873c11c0f2d710ddb3f09fce024b3a58502ae3f"
        ),
      ]),
    NoiseVector(
      name: "Noise_NN_25519_ChaChaPoly_SHA256", origin: "snow",
      prologue: "5468657265206973206e6f20726967687420616e642077726f6e672e2054686572652773206f6e6c792066756e"
        + "20616e6420626f72696e672e",
      initiatorStatic: nil,
      initiatorEphemeral: "ba743ce40b65ad7ec0700dc2e57de4791022a8f42cd46517c6689c5c812b3b36",
      responderStatic: nil,
      responderEphemeral: "d5cb9c3d9df2b6263f292f59099680ab2b523cf02b43a4c534b1fa94f9a80ed8",
      handshakeHash: nil,
      messages: [
        (
          "d369dc8436b80ad2936b4179ef262a0d174c06e3d452de5f22a7ca0326baaac7",
          "479a148ee78e18278f7716338574086a12bf8d90cc54c6c88ae6a4275dbd1478d369dc8436b80ad2936b4179ef"
            + "262a0d174c06e3d452de5f22a7ca0326baaac7"
        ),
        (
          "87f4ce9acdcfe73e88f0d2b7e8b6009f07c5a42b3412909c1b7ce407a763ebd1",
          "5f1bc611a449717c2fc7c33a0f3976beae914c336d2a761c2f6e1ee2ab721f7c166608582f25b34bf5ebe47804"
            + "9971b64e5982d8b546b1cfa58fae828b7c8137562fdec5808f41fadeeee43013019277"
        ),
        (
          "bdc326451b8af9b6b82a2054643878d9eeaea4845c6b1e9ba616b2723c2ef272",
          "15f337bd32ddb96a17765a9499a4eb24b757d59c78d5366fdd56a2eab7eed11a0b6d4ed2947c0bf83d9d625ab9"
            + "0ee60b"
        ),
        (
          "a783aa12cefa403d1dff9d6ac924f860a15d1ba21c2c4976f8fa88d76e590fef",
          "6b676682c308c230a602d1997ff9e94b815dbc497346a4144fc4290021a2dbfcbee618798a8eb5042562a63792"
            + "7d4e98"
        ),
      ]),
    NoiseVector(
      name: "Noise_NN_25519_AESGCM_SHA256", origin: "snow",
      prologue: "5468657265206973206e6f20726967687420616e642077726f6e672e2054686572652773206f6e6c792066756e"
        + "20616e6420626f72696e672e",
      initiatorStatic: nil,
      initiatorEphemeral: "37fe1f46e20738c35ba2a6dc18e22f3ab1ce7d5b6bfc0c831828d476fff9418b",
      responderStatic: nil,
      responderEphemeral: "ea3fa55cb93537a991dd37b0a45f6ccd96fb405f7813960cd60d17ef8dd21045",
      handshakeHash: nil,
      messages: [
        (
          "7abc443431e2a674ded40fa99190db8ec84c39f4e59b4b06ada67091ef8b4251",
          "cb3a5b076f4f6d0fbef467889a7dbe137af01edac2ee10b61bb30b54285414607abc443431e2a674ded40fa991"
            + "90db8ec84c39f4e59b4b06ada67091ef8b4251"
        ),
        (
          "c28c38b69d02d656ebb04b7776d4d9c5d2ddf56f02821171e7f2206b95bcbae6",
          "888b3440ba2722e6b8248d65ea3079cfd3204a8b6a212f6445d84b7caae72c7b3a7111b08614b0af014229d245"
            + "4bedc6766528fdd6b0f78685f97629e2fb9173ea0319e47c1631c9ebe834528c360fda"
        ),
        (
          "90c827cc7c3c26e3731dd04dba5885d2fa122887eef8469cfc4673628412b06b",
          "e3d060c46b32dc55a171a95287d8ecc2570b7cd33792c6876b66abed3ea488b724dd95959f642782303d79d80d"
            + "49f237"
        ),
        (
          "6eeb5ad89abc7cd32c29db62b609fab0f1c2d2f41c5f4dc8769a6cfc9575baeb",
          "cf7c33e720569f26b8a6f70b9a247fa41bd492bcb5a6cb6b2d5d1105502aed893ad24daa5c9e546dde6ea698f9"
            + "c1fb0a"
        ),
      ]),
    NoiseVector(
      name: "Noise_XX_25519_ChaChaPoly_SHA256", origin: "snow",
      prologue: "5468657265206973206e6f20726967687420616e642077726f6e672e2054686572652773206f6e6c792066756e"
        + "20616e6420626f72696e672e",
      initiatorStatic: "7dec208517a3b81a2861d7a71266d5d6dc944c5a8816634a86fe63198a0148ee",
      initiatorEphemeral: "a32daf21e93c0131495ce1d903181fde81cc46937daaeb990bae7c992709421e",
      responderStatic: "4d0aed5098e3b4ef20357e9f686ce66204c792b358da2e475017d6c485304881",
      responderEphemeral: "4eece0f195d026db035ff987597c429d3ad3bcc2944df37d649528951b2a27c5",
      handshakeHash: nil,
      messages: [
        (
          "d03c489139e645d0711a3c9e810d776b46a84912463fafa87b884eebf242dc34",
          "f9fa868ba97ab8a2686deccfaad5a484ee10a5bb85e3d1dce015a84797f92818d03c489139e645d0711a3c9e81"
            + "0d776b46a84912463fafa87b884eebf242dc34"
        ),
        (
          "d8190a92f7dc0c93dbea9118ba8055751fb7c6590c416ffbd419964132b99a85",
          "8c4e6fdb7d09d501a86f7eca5c234522751706ed409182c05cdf5f827d4dae47b81c6c5f43b025692c24391eef"
            + "ee725c17d8cb0fbe3e4abb8aedf42c4fd2592d4ea48ac08989d6ae8b4adae08b2c34087c808c7aa55a63c02b0f"
            + "ab9e930612336bd43eaea04d3c670a0a146691aa9cc9d357872320dc735dbc48580cffb553db"
        ),
        (
          "77891b19dcb92ef7c055b672c4a5aa7fdf1c84146b8b303459022729473ce254",
          "933ca6b5ed60df3df66121f0ab49a09e49efa45c613a86a3cecbf4c535cef2f83f72b42837b18e3572f2fdc2b7"
            + "4c331e2368a545cef54bdca081678ab0e9dd5348122459e0c034c851984d88ce610963d43cde6cfe73a67fbd5a"
            + "63e8bfca96d0"
        ),
        (
          "d7efdf988072881941db045a42882433817555128fbf5663e56081712ec7d212",
          "54ef0ff0629e1aaa7685a2806ab111cba76b52331f2642276736f415868eacb69ab2577f3bda0cbf72f879685f"
            + "6ed25f"
        ),
        (
          "dd7bf01a588bafb52c6cfba952e5d8fe35cc2b3f92b4730ae2474615157345ce",
          "356be70f110306d5c699bb834bb9d58d909e325924dfbec972e406e6f294dc63e1daebefe8a62a334facc8048a"
            + "b4ad66"
        ),
      ]),
    NoiseVector(
      name: "Noise_XX_25519_AESGCM_SHA256", origin: "snow",
      prologue: "5468657265206973206e6f20726967687420616e642077726f6e672e2054686572652773206f6e6c792066756e"
        + "20616e6420626f72696e672e",
      initiatorStatic: "67a147237ca2e511a5328abf44fc049e725d23ac193f1d5e8da60d543670cd39",
      initiatorEphemeral: "b4dbfea92d1afb2ce4a508bd5e014d21ee95ced8d12346d226985d40b2da95e7",
      responderStatic: "0e64a9143ba4c2bb79a25cd1c12575a9da949b52338b32fe1208e4b598c9acc0",
      responderEphemeral: "c3142e465cafd8356330d7f910146c5428a524e723df165d76a2d5a697aa7e6d",
      handshakeHash: nil,
      messages: [
        (
          "09f6721fa79e976f05d523c07e4818bfad6903108a05734e3163cec30442fcf5",
          "c8a324f41408be37f760130b5a8f2c4e9c92bab229e9b78007aa43b7c7656b3409f6721fa79e976f05d523c07e"
            + "4818bfad6903108a05734e3163cec30442fcf5"
        ),
        (
          "af62581a26fc31c4b722c1f04d73d845eb6daf35bcd64fc805a46a74bd747d90",
          "4e935a4c1dccaf91b78062590be1e790f984eeff2ab9a219e491387a99dbfe53b9ea4a0a1b78a30056a0615ef4"
            + "cfcc5d5bcfa087abd07df701c08b2410ab385c490a43cd853a15a1d1e8162c25b78d362ff84afd1f02e0d0e8d2"
            + "5ada33fe5f8e8856cc49e9a896c1c10616508f52387ca29d35a037c7d1c968a45d07daf01667"
        ),
        (
          "bae081c11b0a050d08a48d4a2dd387bd927e18d12c1f2758ae712ec4e3948dc8",
          "72eb5f83ef7773b38886a657b2216368f76f51e90855aaec0c9cd65c7750c531b3ef8a9261065b9b73009e698c"
            + "3e0e1e7153c64e842d877db5f0953c2a43f12bdee99b360ebc11ee64a2989bf8f486a45267753caf35ad590022"
            + "4e9b04c4b5b2"
        ),
        (
          "062b027afab93baa74c7cdc1ac71b3486636bed142caec9f70f4dd672dbe120d",
          "9953df9aa4294b12364dd6896de6e705564a5583c67ed86f0b985054d63f4381bdb99faa8633893643d6ee3ba9"
            + "87344f"
        ),
        (
          "3000ff396f68e4d00ac10c97a4c14e5901e3245dc29f9a801427babd59bfc2a3",
          "d9ea28203c96f5ac9024541d8f05e5e9bbfedccf701d2a2130ddeada49446a546d03c3ed440558782120b95e53"
            + "7a229e"
        ),
      ]),
  ]
}
