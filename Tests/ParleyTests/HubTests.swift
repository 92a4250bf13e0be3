import ParleyMachines
import ParleyVocabulary
import Testing

@testable import Parley

@Suite struct HubTests {
  /// Two actors tell: membership may still be working off a presence when login has told of the end.
  @Test func aPresenceToldAfterTheChannelWasLeftDoesNotCount() throws {
    let me = PeerID(Bytes32(words: (1, 1, 1, 1)))
    let channel = ChannelID(Bytes32(words: (2, 2, 2, 2)))
    let name = try ChannelName("kitchen")
    let hub = Hub(me: me, instance: Instance(1), trouble: { _ in }, aborted: {})
    func tellOnline(_ value: UInt64) throws {
      let view = MemberView(
        peer: PeerID(Bytes32(words: (3, 3, 3, value))), displayName: try DisplayName("Ben"), isOnline: true,
        isHandRaised: false)
      hub.take(.member(channel, view))
    }
    hub.take(.opened(name, channel))
    try tellOnline(1)
    #expect(hub.presentCount(in: channel) == 1)
    hub.take(.closed(name, channel))
    try tellOnline(2)
    #expect(hub.presentCount(in: channel) == 0)
    hub.take(.opened(name, channel))
    #expect(hub.presentCount(in: channel) == 0)
    try tellOnline(1)
    #expect(hub.presentCount(in: channel) == 1)
  }
}
