// What people paste or scan as an invitation.
import ParleyVocabulary
import ParleyWire

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let text = String(decoding: UnsafeBufferPointer(start: data, count: count), as: UTF8.self)
  guard let invitation = try? Invitation(link: text) else { return 0 }
  precondition((try? Invitation(link: invitation.link)) == invitation, "a link says what it says")
  precondition((try? Invitation(link: invitation.linkInCapitals)) == invitation, "in capitals, too")
  let pasted = text.split(whereSeparator: \.isWhitespace).first.map { Array($0.utf8) } ?? []
  precondition(
    pasted == Array(invitation.link.utf8) || pasted == Array(invitation.linkInCapitals.utf8),
    "one invitation has one link")
  return 0
}
