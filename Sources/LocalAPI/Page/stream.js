// One stream of events for all tabs of this browser. A browser opens six connections to one place, so that a few tabs
// with a stream each would leave none for anything else. Runs as a shared worker; where there is none, in the page.
const TYPES = ["message", "member", "impostor", "delivered", "expired", "joined", "left", "state_changed", "dropped",
  "role", "voided", "counted", "announcement", "closed", "keys_changed", "refused", "token_accepted",
  "token_refused", "typing", "attribute", "message_changed"]
// Those that come once to each, in the order of cursors.
const COUNTED = ["message", "message_changed"]
// Messages kept for a tab that begins a little behind the others.
const KEPT = 2_000

class Stream {
  #base
  #source = null
  #isOpen = false
  // The last message that was seen, and the one after which all are kept.
  #cursor = 0
  #begin = 0
  #kept = []
  // Each with the last message that it has.
  #tabs = new Map()
  #failures = 0
  // Connections that were refused in a row though the node answers.
  #refusals = 0
  #timer = 0

  constructor(base) { this.#base = base }

  start(tab, cursor) {
    this.#tabs.set(tab, cursor)
    if (this.#source === null) return this.#begins(cursor)
    if (cursor < this.#begin) return this.#begins(cursor)
    for (const [type, data, at] of this.#kept) this.#give(tab, type, data, at)
    if (this.#isOpen) tab.postMessage({ state: true })
  }

  stop(tab) {
    this.#tabs.delete(tab)
    if (this.#tabs.size > 0) return
    clearTimeout(this.#timer)
    this.#source?.close()
    this.#source = null
    this.#isOpen = false
  }

  #begins(cursor) {
    clearTimeout(this.#timer)
    this.#source?.close()
    this.#cursor = cursor
    this.#begin = cursor
    this.#kept = []
    this.#open()
  }

  #tell(message) { for (const tab of this.#tabs.keys()) tab.postMessage(message) }

  /** A message comes to each tab once: to none that began after it. */
  #give(tab, type, data, at) {
    if (at !== null) {
      if (at <= this.#tabs.get(tab)) return
      this.#tabs.set(tab, at)
    }
    tab.postMessage({ type, data })
  }

  #open() {
    const source = new EventSource(`${this.#base}/v1/events?since=${this.#cursor}`)
    this.#source = source
    source.addEventListener("open", () => {
      this.#failures = 0
      this.#refusals = -1
      this.#isOpen = true
      this.#tell({ state: true })
    })
    for (const type of TYPES) source.addEventListener(type, (event) => this.#take(type, event))
    source.addEventListener("error", () => this.#failed(source))
  }

  #take(type, event) {
    let at = null
    if (/^\d+$/.test(event.lastEventId)) {
      this.#cursor = Number(event.lastEventId)
      if (COUNTED.includes(type)) at = this.#cursor
    }
    if (at !== null) {
      this.#kept.push([type, event.data, at])
      if (this.#kept.length > KEPT) this.#begin = this.#kept.shift()[2]
    }
    for (const tab of this.#tabs.keys()) this.#give(tab, type, event.data, at)
  }

  #failed(source) {
    if (source !== this.#source) return
    source?.close()
    this.#failures += 1
    this.#isOpen = false
    this.#tell({ state: false })
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#again(), Math.min(2_000, 250 * this.#failures))
  }

  /** Asks first: an EventSource does not say why it was refused. */
  async #again() {
    let status
    try {
      status = (await fetch(`${this.#base}/v1/status`, { cache: "no-store" })).status
    } catch {
      status = 0
    }
    if (status === 401 || status === 403) return this.#end({ refused: true })
    if (status !== 200) return this.#failed(this.#source)
    // The node has another store than before.
    if (++this.#refusals > 3) return this.#end({ lost: true })
    this.#open()
  }

  #end(message) {
    this.#source?.close()
    this.#source = null
    this.#tell(message)
  }
}

const streams = new Map()

/** Listens to one tab. */
function serve(tab) {
  let stream = null
  tab.onmessage = ({ data }) => {
    if (data.stop) return stream?.stop(tab)
    if (!streams.has(data.base)) streams.set(data.base, new Stream(data.base))
    stream = streams.get(data.base)
    stream.start(tab, data.start)
  }
}

if (typeof SharedWorkerGlobalScope !== "undefined") self.onconnect = ({ ports: [tab] }) => serve(tab)

/** Where a page asks for events. */
export function connect() {
  if (typeof SharedWorker !== "undefined") {
    try {
      // The one script of the page that is named by a text: the policy lets no other through.
      const policy = window.trustedTypes?.createPolicy("parley-stream", { createScriptURL: () => "/stream.js" })
      const address = policy ? policy.createScriptURL("") : "/stream.js"
      return new SharedWorker(address, { type: "module", name: "parley-stream-1" }).port
    } catch { /* then in the page */ }
  }
  const { port1, port2 } = new MessageChannel()
  serve(port1)
  return port2
}
