import Testing

/// The test vectors of PASETO version 4 (github.com/paseto-standard/test-vectors, v4.json): those of the purpose
/// public, and those that a reader of public tokens must refuse.
struct PasetoVector: Sendable, CustomTestStringConvertible {
  let name: String
  /// Nil where the vector has a symmetric key.
  let publicKey: String?
  let seed: String?
  let token: String
  /// Nil: to be refused.
  let payload: String?
  let footer: String
  let assertion: String

  var testDescription: String { name }

  static let all: [PasetoVector] = [
    PasetoVector(
      name: "4-S-1",
      publicKey: "1eb9dbbbbc047c03fd70604e0071f0987e16b28b757225c11f00415d0e20b1a2",
      seed: "b4cbfb43df4ce210727d953e4a713307fa19bb7d9f85041438d9e11b942a3774",
      token: "v4.public.eyJkYXRhIjoidGhpcyBpcyBhIHNpZ25lZCBtZXNzYWdlIiwiZXhwIjoiMjAyMi0wMS0wMVQwMDowMDow"
        + "MCswMDowMCJ9bg_XBBzds8lTZShVlwwKSgeKpLT3yukTw6JUz3W4h_ExsQV-P0V54zemZDcAxFaSeef1QlXEFtkqxT"
        + "1ciiQEDA",
      payload: "{\"data\":\"this is a signed message\",\"exp\":\"2022-01-01T00:00:00+00:00\"}",
      footer: "",
      assertion: ""),
    PasetoVector(
      name: "4-S-2",
      publicKey: "1eb9dbbbbc047c03fd70604e0071f0987e16b28b757225c11f00415d0e20b1a2",
      seed: "b4cbfb43df4ce210727d953e4a713307fa19bb7d9f85041438d9e11b942a3774",
      token: "v4.public.eyJkYXRhIjoidGhpcyBpcyBhIHNpZ25lZCBtZXNzYWdlIiwiZXhwIjoiMjAyMi0wMS0wMVQwMDowMDow"
        + "MCswMDowMCJ9v3Jt8mx_TdM2ceTGoqwrh4yDFn0XsHvvV_D0DtwQxVrJEBMl0F2caAdgnpKlt4p7xBnx1HcO-SPo8F"
        + "Pp214HDw.eyJraWQiOiJ6VmhNaVBCUDlmUmYyc25FY1Q3Z0ZUaW9lQTlDT2NOeTlEZmdMMVc2MGhhTiJ9",
      payload: "{\"data\":\"this is a signed message\",\"exp\":\"2022-01-01T00:00:00+00:00\"}",
      footer: "{\"kid\":\"zVhMiPBP9fRf2snEcT7gFTioeA9COcNy9DfgL1W60haN\"}",
      assertion: ""),
    PasetoVector(
      name: "4-S-3",
      publicKey: "1eb9dbbbbc047c03fd70604e0071f0987e16b28b757225c11f00415d0e20b1a2",
      seed: "b4cbfb43df4ce210727d953e4a713307fa19bb7d9f85041438d9e11b942a3774",
      token: "v4.public.eyJkYXRhIjoidGhpcyBpcyBhIHNpZ25lZCBtZXNzYWdlIiwiZXhwIjoiMjAyMi0wMS0wMVQwMDowMDow"
        + "MCswMDowMCJ9NPWciuD3d0o5eXJXG5pJy-DiVEoyPYWs1YSTwWHNJq6DZD3je5gf-0M4JR9ipdUSJbIovzmBECeaWm"
        + "aqcaP0DQ.eyJraWQiOiJ6VmhNaVBCUDlmUmYyc25FY1Q3Z0ZUaW9lQTlDT2NOeTlEZmdMMVc2MGhhTiJ9",
      payload: "{\"data\":\"this is a signed message\",\"exp\":\"2022-01-01T00:00:00+00:00\"}",
      footer: "{\"kid\":\"zVhMiPBP9fRf2snEcT7gFTioeA9COcNy9DfgL1W60haN\"}",
      assertion: "{\"test-vector\":\"4-S-3\"}"),
    PasetoVector(
      name: "4-F-1",
      publicKey: "1eb9dbbbbc047c03fd70604e0071f0987e16b28b757225c11f00415d0e20b1a2",
      seed: "b4cbfb43df4ce210727d953e4a713307fa19bb7d9f85041438d9e11b942a3774",
      token: "v4.local.vngXfCISbnKgiP6VWGuOSlYrFYU300fy9ijW33rznDYgxHNPwWluAY2Bgb0z54CUs6aYYkIJ-bOOOmJHP"
        + "uX_34Agt_IPlNdGDpRdGNnBz2MpWJvB3cttheEc1uyCEYltj7wBQQYX.YXJiaXRyYXJ5LXN0cmluZy10aGF0LWlzbi"
        + "d0LWpzb24",
      payload: nil,
      footer: "arbitrary-string-that-isn't-json",
      assertion: "{\"test-vector\":\"4-F-1\"}"),
    PasetoVector(
      name: "4-F-2",
      publicKey: nil,
      seed: nil,
      token: "v4.public.eyJpbnZhbGlkIjoidGhpcyBzaG91bGQgbmV2ZXIgZGVjb2RlIn22Sp4gjCaUw0c7EH84ZSm_jN_Qr41M"
        + "rgLNu5LIBCzUr1pn3Z-Wukg9h3ceplWigpoHaTLcwxj0NsI1vjTh67YB.eyJraWQiOiJ6VmhNaVBCUDlmUmYyc25FY"
        + "1Q3Z0ZUaW9lQTlDT2NOeTlEZmdMMVc2MGhhTiJ9",
      payload: nil,
      footer: "{\"kid\":\"zVhMiPBP9fRf2snEcT7gFTioeA9COcNy9DfgL1W60haN\"}",
      assertion: "{\"test-vector\":\"4-F-2\"}"),
    PasetoVector(
      name: "4-F-3",
      publicKey: nil,
      seed: nil,
      token: "v3.local.23e_2PiqpQBPvRFKzB0zHhjmxK3sKo2grFZRRLM-U7L0a8uHxuF9RlVz3Ic6WmdUUWTxCaYycwWV1yM8g"
        + "KbZB2JhygDMKvHQ7eBf8GtF0r3K0Q_gF1PXOxcOgztak1eD1dPe9rLVMSgR0nHJXeIGYVuVrVoLWQ.YXJiaXRyYXJ5"
        + "LXN0cmluZy10aGF0LWlzbid0LWpzb24",
      payload: nil,
      footer: "arbitrary-string-that-isn't-json",
      assertion: "{\"test-vector\":\"4-F-3\"}"),
    PasetoVector(
      name: "4-F-4",
      publicKey: nil,
      seed: nil,
      token: "v4.local.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQAr68PS4AXe7If_ZgesdkUMvSwscFlAl1pk5HC"
        + "0e8kApeaqMfGo_7OpBnwJOAbY9V7WU6abu74MmcUE8YWAiaArVI8XJ5hOb_4v9RmDkneN0S92dx0OW4pgy7omxgf3S"
        + "8c3LlQh",
      payload: nil,
      footer: "",
      assertion: ""),
    PasetoVector(
      name: "4-F-5",
      publicKey: nil,
      seed: nil,
      token: "v4.local.32VIErrEkmY4JVILovbmfPXKW9wT1OdQepjMTC_MOtjA4kiqw7_tcaOM5GNEcnTxl60WkwMsYXw6FSNb_"
        + "UdJPXjpzm0KW9ojM5f4O2mRvE2IcweP-PRdoHjd5-RHCiExR1IK6t4x-RMNXtQNbz7FvFZ_G-lFpk5RG3EOrwDL6Cg"
        + "DqcerSQ==.eyJraWQiOiJ6VmhNaVBCUDlmUmYyc25FY1Q3Z0ZUaW9lQTlDT2NOeTlEZmdMMVc2MGhhTiJ9",
      payload: nil,
      footer: "{\"kid\":\"zVhMiPBP9fRf2snEcT7gFTioeA9COcNy9DfgL1W60haN\"}",
      assertion: ""),
  ]
}
