import ParleyActors
import ParleyMachines
import ParleyVocabulary
import Testing

@Suite(.timeLimit(.minutes(1)))
struct MailboxTests {
  @Test func whatIsBeingHandledCounts() async {
    let mailbox = Mailbox<Int>()
    mailbox.post(contentsOf: [1, 2, 3])
    #expect(await mailbox.next() == [1, 2, 3])
    mailbox.post(4)
    #expect(mailbox.count == 4)
    #expect(await mailbox.next() == [4])
    mailbox.close()
    mailbox.post(5)
    #expect(await mailbox.next().isEmpty)
    #expect(mailbox.count == 0)
  }

  @Test func aReaderThatWaitsGetsWhatComesAndTheEnd() async {
    let mailbox = Mailbox<Int>()
    async let read: [Int] = {
      var all: [Int] = []
      while true {
        let mail = await mailbox.next()
        if mail.isEmpty { return all }
        all += mail
      }
    }()
    for number in 0..<1_000 { mailbox.post(number) }
    mailbox.close()
    #expect(await read == Array(0..<1_000))
  }

  private actor Worker {
    let executor: ThreadExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    init(_ executor: ThreadExecutor) { self.executor = executor }
    func twice(_ number: Int) -> Int { number * 2 }
  }

  @Test func aCallThatComesAfterTheThreadHasEndedReturns() async {
    let executor = ThreadExecutor()
    let worker = Worker(executor)
    #expect(await worker.twice(1) == 2)
    executor.stop()
    for number in 0..<100 { #expect(await worker.twice(number) == number * 2) }
  }

  @Test func questionsAfterTheEndAreAnswered() async throws {
    let switchboard = Switchboard { _ in }
    let login = LoginActor(switchboard)
    let name = try ChannelName("kitchen")
    let channel = ChannelID(Bytes32(words: (1, 1, 1, 1)))
    async let running: Void = login.run()
    // The store that would answer is not there: it waits until the end.
    async let early = login.join(name, channel)
    while switchboard.store.count == 0 { await Task.yield() }
    switchboard.close()
    await running
    #expect(await early == nil)
    #expect(await login.join(name, channel) == nil)
    #expect(await login.leave(name) == nil)
  }
}
