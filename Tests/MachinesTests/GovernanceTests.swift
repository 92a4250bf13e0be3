import ParleyMachines
import ParleyVocabulary
import ParleyWire
import Testing

@Suite struct GovernanceTests {
  @Test func theFounderOwnsAndNobodyElseIsIn() {
    let governance = Governance("")
    #expect(governance.standing("F") == .owner)
    #expect(governance.standing("A") == .notAdmitted(.noInvitation))
    #expect(governance.void("F1.1@1") == nil)
    #expect(governance.void("A1.1@1") == .notAdmitted(.noInvitation))
  }

  @Test func whoWasInvitedIsIn() {
    let governance = Governance("A1.1@3 join F")
    #expect(governance.standing("A") == .member)
    #expect(governance.void("A1.2@4") == nil)
  }

  @Test func invitationsAreRefusedForAReason() {
    let governance = Governance(
      """
      A1.1@3 join F altered=1
      B1.1@11 join F i=2 expires=10
      C1.1@3 join X i=3
      D1.1@9 join F i=4 uses=1
      E1.1@8 join F i=4 uses=1
      G1.1@10 join F i=2 expires=10
      """)
    #expect(governance.standing("A") == .notAdmitted(.altered))
    #expect(governance.standing("B") == .notAdmitted(.expired))
    #expect(governance.standing("C") == .notAdmitted(.inviterHadNoRight))
    #expect(governance.standing("D") == .notAdmitted(.usedUp))
    #expect(governance.standing("E") == .member)
    #expect(governance.standing("G") == .member)
    #expect(governance.void("D1.2@10") == .notAdmitted(.usedUp))
  }

  @Test func whoWasConfirmedIsNotPushedOutByABackdatedNewcomer() {
    let governance = Governance(
      """
      A1.1@9 join F uses=1
      F1.1@10 member A
      B1.1@1 join F uses=1
      """)
    #expect(governance.standing("A") == .member)
    #expect(governance.standing("B") == .notAdmitted(.usedUp))
  }

  @Test func joiningTwiceByOneInvitationCountsOnce() {
    let governance = Governance("A1.1@3 join F uses=2\nA2.1@5 join F uses=2\nB1.1@6 join F uses=2")
    #expect(governance.standing("A") == .member)
    #expect(governance.standing("B") == .member)
  }

  @Test func adminsInviteMembersOnly() {
    let governance = Governance(
      """
      F1.1@1 admin A
      B1.1@5 join A i=1
      C1.1@5 join A i=2 as=admin
      D1.1@5 join F i=3 as=admin
      E1.1@6 join D i=4
      """)
    #expect(governance.standing("B") == .member)
    #expect(governance.standing("C") == .notAdmitted(.inviterHadNoRight))
    #expect(governance.standing("D") == .admin)
    #expect(governance.standing("E") == .member)
  }

  @Test func invitationsOfAFormerAdminDoNotCount() {
    let governance = Governance("F1.1@1 admin A\nF1.2@5 member A 1:3\nB1.1@4 join A i=1\nC1.1@6 join A i=1")
    #expect(governance.standing("B") == .member)
    #expect(governance.standing("C") == .notAdmitted(.inviterHadNoRight))
  }

  // MARK: Mutes

  private static let muted = "B1.1@2 join F\nF1.1@5 mute B 1:3 2:1"

  @Test func theMutedAreHeardUpToTheHeadsNamed() {
    let governance = Governance(Self.muted)
    #expect(governance.standing("B") == .muted(until: nil))
    #expect(governance.void("B1.3@4") == nil)
    #expect(governance.void("B1.4@6") == .muted(until: nil))
    #expect(governance.void("B1.4@1") == .muted(until: nil))
    #expect(governance.void("B2.2@1") == .muted(until: nil))
    #expect(governance.void("B3.1@1") == .muted(until: nil))
    #expect(governance.void("B3.1@1", isHidden: true) == nil)
  }

  @Test func aMuteEndsAtItsTime() {
    let governance = Governance("B1.1@2 join F\nF1.1@5 mute B 1:3 until=20")
    #expect(governance.void("B1.4@6", t: 19) == .muted(until: 20))
    #expect(governance.void("B1.4@6", t: 20) == nil)
    #expect(governance.troubleSaying(Notation.letter("B"), isHidden: false, at: 19) == .muted(until: 20))
    #expect(governance.troubleSaying(Notation.letter("B"), isHidden: false, at: 20) == nil)
    #expect(governance.troubleSaying(Notation.letter("B"), isHidden: true, at: 19) == nil)
  }

  @Test func whatWasSaidWhileMutedStaysUnheardOnceItIsLifted() {
    let governance = Governance(Self.muted + "\nF1.2@9 member B 1:6 2:1")
    #expect(governance.standing("B") == .member)
    #expect(governance.void("B1.3@4") == nil)
    #expect(governance.void("B1.6@8") == .muted(until: nil))
    #expect(governance.void("B1.7@10") == nil)
    #expect(governance.void("B3.1@11") == nil)
  }

  @Test func aLaterMuteTakesTheEarliersPlace() {
    let governance = Governance(Self.muted + "\nF1.2@9 mute B 1:6 2:1 until=30")
    #expect(governance.void("B1.5@8", t: 40) == .muted(until: nil))
    #expect(governance.void("B1.7@10", t: 29) == .muted(until: 30))
    #expect(governance.void("B1.7@10", t: 30) == nil)
  }

  @Test func theOwnerMutesAnAdminWhoStaysOne() {
    let governance = Governance("F1.1@1 admin A\nF1.2@2 mute A\nB1.1@2 join F\nA1.1@5 remove B")
    #expect(governance.standing("A") == .admin)
    #expect(governance.void("A1.2@6") == .muted(until: nil))
    #expect(governance.standing("B") == .removed)
  }

  // MARK: Removal

  @Test func theRemovedAreNobodyBeyondTheHeads() {
    let governance = Governance("B1.1@2 join F\nF1.1@5 remove B 1:3")
    #expect(governance.standing("B") == .removed)
    #expect(governance.void("B1.3@9") == nil)
    #expect(governance.void("B1.4@2") == .removed)
    #expect(governance.void("B1.4@2", isHidden: true) == .removed)
    #expect(governance.void("B7.1@1") == .removed)
  }

  @Test func anInvitationFromBeforeTheRemovalDoesNotBringBack() {
    let old = Governance("B1.1@2 join F\nF1.1@5 remove B 1:3 t=50\nB2.1@max join F i=2 issued=49")
    #expect(old.standing("B") == .removed)
    let new = Governance("B1.1@2 join F\nF1.1@5 remove B 1:3 t=50\nB2.1@9 join F i=2 issued=51")
    #expect(new.standing("B") == .member)
    #expect(new.void("B1.4@6") == .removed)
    #expect(new.void("B2.2@10") == nil)
  }

  @Test func theBannedNeedMoreThanAnInvitation() {
    let banned = "B1.1@2 join F\nF1.1@5 ban B 1:3 t=50\nB2.1@9 join F i=2 issued=51"
    #expect(Governance(banned).standing("B") == .banned)
    let governance = Governance(banned + "\nF1.2@12 member B 1:3 2:1")
    #expect(governance.standing("B") == .member)
    #expect(governance.void("B2.1@9") == .banned)
    #expect(governance.void("B2.2@13") == nil)
  }

  @Test func anAdminByInvitationCanBeRemovedWhateverItsLamportTime() {
    let governance = Governance("A1.1@max join F as=admin\nF1.1@5 remove A t=50\nB1.1@2 join F i=2\nA1.2@max ban B")
    #expect(governance.standing("A") == .removed)
    #expect(governance.standing("B") == .member)
  }

  // MARK: Rights

  @Test func membersHaveNoRights() {
    let governance = Governance(
      """
      B1.1@2 join F
      C1.1@2 join F
      B1.2@3 mute C
      B1.3@3 admin B
      B1.4@3 announce me
      B1.5@3 close
      B1.6@3 generation 1 1
      B1.7@3 lower C 1:9
      B1.8@3 owner B
      B1.9@3 organiser B
      """)
    #expect(governance.standing("C") == .member)
    #expect(governance.standing("B") == .member)
    #expect(governance.owner == Notation.founder)
    #expect(governance.announcement == nil)
    #expect(governance.isClosed == false)
    #expect(governance.generation == nil)
    #expect(governance.organiser == nil)
    #expect(governance.isHandLowered(Notation.order("C1.1@1")) == false)
  }

  @Test func twoAdminsAgainstEachOtherBothFail() {
    let governance = Governance(
      "F1.1@1 admin A\nF1.2@2 admin B\nA1.1@5 remove B\nB1.1@5 remove A\nA1.2@0 ban B\nB1.2@max mute A")
    #expect(governance.standing("A") == .admin)
    #expect(governance.standing("B") == .admin)
    #expect(governance.void("A1.3@9") == nil)
  }

  @Test func nobodyIsReachedByWhatIsDatedBeforeItWasAnAdmin() {
    let governance = Governance("F1.1@1 admin A\nB1.1@1 join F\nF1.2@9 admin B 1:5\nA1.1@5 mute B")
    #expect(governance.standing("B") == .admin)
    #expect(governance.void("B1.3@4") == nil)
  }

  @Test func anAdminWhoIsNoneAnyMoreCanBeActedOn() {
    let governance = Governance(
      "F1.1@1 admin A\nF1.2@2 admin B\nF1.3@5 member B 1:2\nA1.1@7 mute B 1:2\nA1.2@4 ban B")
    #expect(governance.standing("B") == .muted(until: nil))
  }

  @Test func aDemotedAdminsActsBeyondTheHeadsAreVoidWhateverTheirTime() {
    let governance = Governance(
      """
      F1.1@1 admin A
      B1.1@2 join F
      C1.1@2 join F
      D1.1@2 join F
      A1.1@3 mute B
      F1.2@9 member A 1:1
      A1.2@4 ban C
      A2.1@max ban D
      """)
    #expect(governance.standing("A") == .member)
    #expect(governance.standing("B") == .muted(until: nil))
    #expect(governance.standing("C") == .member)
    #expect(governance.standing("D") == .member)
  }

  @Test func theLastActOnAMemberWins() {
    let governance = Governance(
      "F1.1@1 admin A\nB1.1@2 join F\nA1.1@5 remove B 1:1\nF1.2@6 member B 1:4\nA1.2@7 mute B")
    #expect(governance.standing("B") == .muted(until: nil))
  }

  // MARK: Ownership

  @Test func ownershipGoesOver() {
    let governance = Governance(
      """
      F1.1@1 admin A
      F1.2@2 member B
      F1.3@5 owner A 1:3
      F1.4@6 mute B
      F1.5@7 admin C
      A1.1@8 admin D
      """)
    #expect(governance.standing("A") == .owner)
    #expect(governance.standing("F") == .admin)
    #expect(governance.standing("B") == .muted(until: nil))
    #expect(governance.standing("C") == .notAdmitted(.noInvitation))
    #expect(governance.standing("D") == .admin)
  }

  @Test func aSecondTransferInTheSameLogIsNoneWhateverItsTime() {
    let governance = Governance("F1.3@5 owner A 1:3\nF1.4@1 owner B 1:4")
    #expect(governance.owner == Notation.letter("A"))
  }

  @Test func ofTwoTransfersThatDoNotKnowOfEachOtherTheOrderDecides() {
    let one = Governance("F1.3@5 owner A 1:3\nF2.1@4 owner B 2:1")
    let other = Governance("F2.1@4 owner B 2:1\nF1.3@5 owner A 1:3")
    #expect(one.owner == Notation.letter("B"))
    #expect(one.answers(["A", "B", "F"]) == other.answers(["A", "B", "F"]))
  }

  @Test func whatAFormerOwnerSignedForTheEndOfTimeYieldsToTheNext() {
    let governance = Governance(
      "B1.1@1 join F\nF1.1@max ban B\nF1.2@max announce mine\nF1.3@5 owner A 1:2\nA1.1@7 member B\nA1.2@8 announce ours"
    )
    #expect(governance.standing("B") == .member)
    #expect(governance.announcement?.body == "ours")
  }

  @Test func theOwnershipComesBack() {
    let governance = Governance(
      "F1.1@5 owner A 1:1\nA1.1@6 owner F 1:1\nA1.2@7 admin B\nF1.2@8 member A 1:2\nF1.3@9 admin C")
    #expect(governance.standing("F") == .owner)
    #expect(governance.standing("A") == .member)
    #expect(governance.standing("B") == .notAdmitted(.noInvitation))
    #expect(governance.standing("C") == .admin)
  }

  @Test func theNewOwnerCanRemoveTheFounder() {
    let governance = Governance("F1.1@5 owner A 1:1\nA1.1@6 ban F 1:4\nF1.2@3 announce no")
    #expect(governance.standing("F") == .banned)
    #expect(governance.void("F1.1@5") == nil)
    #expect(governance.void("F1.4@6") == nil)
    #expect(governance.void("F1.5@1") == .banned)
  }

  // MARK: The rest

  @Test func aClosedChannelHearsTheOwnerAlone() {
    let governance = Governance("F1.1@1 admin A\nB1.1@2 join F\nA1.1@3 close\nF1.2@9 close")
    #expect(governance.void("B1.2@8") == nil)
    #expect(governance.void("B1.2@10") == .closed)
    #expect(governance.void("A1.2@10") == .closed)
    #expect(governance.void("F1.3@11") == nil)
    #expect(governance.troubleSaying(Notation.letter("A"), isHidden: true, at: 0) == .closed)
  }

  @Test func ofTwoGenerationsWithOneNumberTheLowerHashCounts() {
    let governance = Governance("F1.1@1 admin A\nF1.2@2 generation 1 7\nA1.1@2 generation 1 5\nA1.2@3 generation 2 9")
    #expect(governance.generation.map { $0.number } == 2)
    #expect(governance.hash(ofGeneration: 1) == Notation.hash(5))
  }

  @Test func aLoweredHandIsDownUntilItIsRaisedAgain() {
    let governance = Governance("F1.1@1 admin A\nB1.1@2 join F\nA1.1@5 lower B 1:3")
    #expect(governance.isHandLowered(Notation.order("B1.3@max")))
    #expect(governance.isHandLowered(Notation.order("B1.4@6")) == false)
    #expect(governance.void("B1.3@4", isHidden: true) == nil)
  }

  @Test func theAnnouncementIsTheLastOneAndCanBeTakenAway() {
    var governance = Governance("F1.1@1 admin A\nF1.2@2 announce one\nA1.1@3 announce two")
    #expect(governance.announcement?.body == "two")
    #expect(governance.take("F1.3@4 announce").isAnnouncement)
    #expect(governance.announcement == nil)
  }

  @Test func whatWouldBeVoidIsSaidBefore() {
    let governance = Governance("F1.1@1 admin A\nF1.2@1 admin B\nC1.1@2 join F\nD1.1@2 join F\nF1.3@3 remove D 1:1")
    func mayAct(_ actor: String, _ deed: Deed, _ target: String? = nil) -> ActRefusal? {
      governance.mayAct(Notation.letter(actor), deed, on: target.map { Notation.letter($0) })
    }
    #expect(mayAct("C", .role(.muted), "D") == .notAdmin)
    #expect(mayAct("D", .role(.muted), "C") == .excluded(.removed))
    #expect(mayAct("A", .role(.muted), "C") == nil)
    #expect(mayAct("A", .role(.muted), "B") == .targetIsAdmin)
    #expect(mayAct("A", .role(.muted), "F") == .targetIsOwner)
    #expect(mayAct("A", .role(.admin), "C") == .notOwner)
    #expect(mayAct("A", .close) == .notOwner)
    #expect(mayAct("A", .lowerHand, "A") == nil)
    #expect(mayAct("F", .role(.owner), "F") == .targetIsSelf)
    #expect(mayAct("F", .role(.member), "A") == nil)
    #expect(mayAct("A", .invite(.member)) == nil)
    #expect(mayAct("A", .invite(.admin)) == .notOwner)
  }

  @Test func aChangeNamesWhomItConcerns() {
    var governance = Governance("F1.1@1 admin A\nB1.1@2 join F")
    #expect(governance.take("A1.1@5 mute B 1:2").peers == [Notation.letter("B")])
    #expect(governance.take("A1.1@5 mute B 1:2").isNothing)
    #expect(governance.take("B1.2@6 mute A").isNothing)
    #expect(governance.take("F1.2@9 close").isOfAll)
  }

  @Test func actsThatCameBeforeTheirAuthorsRightCountOnceItIsKnown() {
    var governance = Governance("B1.1@2 join F")
    #expect(governance.take("A1.1@5 mute B 1:2").isNothing)
    #expect(governance.take("F1.1@3 admin A").peers.contains(Notation.letter("B")))
    #expect(governance.standing("B") == .muted(until: nil))
  }

  @Test func ofActsThatWereTooManyTheAuthorIsNamedWhenTheyAreNeeded() {
    var governance = Governance("B1.1@2 join F")
    let all = (1...500).map { "A1.\($0)@\($0 + 4) \($0 == 500 ? "mute" : "lower") B 1:2" }.joined(separator: "\n")
    #expect(governance.take(all).isNothing)
    let change = governance.take("F1.1@3 admin A")
    #expect(change.toReload == [Notation.letter("A")])
    #expect(governance.standing("B") == .member)
    #expect(governance.take(all).peers == [Notation.letter("B")])
    #expect(governance.standing("B") == .muted(until: nil))
  }
}
