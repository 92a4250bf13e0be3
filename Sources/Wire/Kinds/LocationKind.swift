import ParleyVocabulary

/// A place: no maps and no positioning inside.
package struct LocationKind: MessageKind {
  package static let type = "location"
  package static let code: UInt64 = 16
  /// Degrees, WGS 84: north is positive, −90 to 90; east is positive, −180 to 180.
  package let latitude: Double
  package let longitude: Double
  package let address: String?
  package let buildingName: String?

  /// Bytes of UTF-8, of each.
  package static let textByteCountMax = 1_024
  package static let latitudes = -90.0...90.0
  package static let longitudes = -180.0...180.0

  package init(latitude: Double, longitude: Double, address: String? = nil, buildingName: String? = nil) {
    precondition(
      Self.latitudes.contains(latitude) && Self.longitudes.contains(longitude), "made here, within what readers take")
    self.latitude = latitude
    self.longitude = longitude
    self.address = address
    self.buildingName = buildingName
  }

  package init(from members: [JSONMember]) throws(WireError) {
    latitude = try members.number("latitude", in: Self.latitudes)
    longitude = try members.number("longitude", in: Self.longitudes)
    address = try members.optionalString("address", byteCountMax: Self.textByteCountMax)
    buildingName = try members.optionalString("building_name", byteCountMax: Self.textByteCountMax)
  }

  package var members: [JSONMember] {
    var members = [JSONMember("latitude", .number(latitude)), JSONMember("longitude", .number(longitude))]
    if let address { members.append(JSONMember("address", .string(address))) }
    if let buildingName { members.append(JSONMember("building_name", .string(buildingName))) }
    return members
  }
}
