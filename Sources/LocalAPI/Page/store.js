// What the page knows: the channels and people talked to, their messages and members, kept in step with the node.
import { call, Events } from "/api.js"
import { fingerprint } from "/dom.js"

const HISTORY_FIRST = 60
const HISTORY_MORE = 100
const HISTORY_JUMP = 2_000
const TAIL = 200
const UNREAD_MAX = 99
// Milliseconds for which somebody is shown as writing though the node never says that it is over, and after which our
// own writing is told again.
const TYPING = 60_000
const TYPING_AGAIN = 3_100

/** Kept between visits; a browser may refuse to. */
export const memory = {
  get(name, otherwise) {
    try { return JSON.parse(localStorage.getItem("parley." + name)) ?? otherwise } catch { return otherwise }
  },
  set(name, value) {
    try { localStorage.setItem("parley." + name, JSON.stringify(value)) } catch { /* then it is forgotten */ }
  },
}

/** A channel, or what is said with one person. */
class Room {
  constructor(kind, id, title) {
    this.kind = kind
    this.id = id
    this.key = kind + ":" + id
    this.title = title
    this.isOpen = false
    // In the order that all members share; `pending`: own ones that the node has not taken yet.
    this.messages = []
    this.pending = []
    this.byKey = new Map()
    this.isAtStart = false
    this.isLoaded = false
    this.members = new Map()
    // Whose hands are up, in the order in which they went up.
    this.hands = []
    this.media = []
    this.announcement = null
    // Who writes now: the timer that ends it.
    this.writers = new Map()
    // The message that the one being written answers.
    this.answered = null
    this.unread = 0
    this.readThrough = memory.get("read." + this.key, null)
    // The first message that was new when the room was opened, or while the page was hidden.
    this.marker = null
    this.draft = ""
  }

  get path() { return this.kind === "c" ? ["channels", this.id, "messages"] : ["peers", this.id, "messages"] }
  get lastCursor() { return this.messages.reduce((last, message) => Math.max(last, message.cursor), 0) }
  get othersOnline() {
    let count = 0
    for (const member of this.members.values()) if (member.status === "online" && !member.self) count += 1
    return count
  }
}

const keyOf = (message) => `${message.sender.sender_id} ${message.message_id}`

class Store extends EventTarget {
  rooms = new Map()
  me = null
  status = null
  isListening = false
  current = null
  reason = ""

  tell(type, detail) { this.dispatchEvent(new CustomEvent(type, { detail })) }

  get sorted() {
    const rooms = [...this.rooms.values()]
    const order = (a, b) => a.kind === b.kind ? a.title.localeCompare(b.title) : a.kind === "c" ? -1 : 1
    return rooms.sort(order)
  }

  /** Everything from the node, then what happens. */
  async start(onRefused) {
    this.events = new Events({
      onEvent: (type, data) => this.take(type, data),
      onState: (isOpen) => this.listening(isOpen),
      onLost: () => this.load(),
      onRefused,
    })
    await this.load()
  }

  async load() {
    const [me, status] = await Promise.all([call("GET", ["id"]), call("GET", ["status"])])
    Object.assign(this, { me, status })
    const names = new Set(this.status.channels.map((channel) => channel.name))
    for (const room of [...this.rooms.values()]) {
      if (room.kind === "c" && !names.has(room.id)) this.rooms.delete(room.key)
    }
    for (const channel of this.status.channels) this.channel(channel.name).isOpen = channel.open
    for (const peer of memory.get("peers", [])) this.peer(peer.id, peer.name)
    const wanted = this.current?.key ?? memory.get("current", null)
    const first = this.rooms.get(wanted) ?? this.sorted[0] ?? null
    // What is looked at comes first.
    const rooms = this.sorted.sort((a, b) => (b === first) - (a === first))
    if (first) await this.loadRoom(first)
    if (first?.kind === "c") this.lookForDeeds(first)
    this.current = null
    this.open(first)
    await Promise.all(rooms.filter((room) => room !== first).map((room) => this.loadRoom(room)))
    const cursors = rooms.map((room) => room.lastCursor)
    this.events.start(Math.max(0, ...cursors))
    this.tell("rooms")
  }

  async loadRoom(room) {
    const [messages] = await Promise.all([
      call("GET", room.path, { query: { limit: HISTORY_FIRST } }).catch(() => []),
      room.kind === "c" ? this.loadMembers(room) : null,
      room.kind === "c" ? this.loadAnnouncement(room) : null,
    ])
    room.messages = []
    room.byKey = new Map()
    for (const message of messages) this.put(room, message, room.messages.length)
    room.isAtStart = messages.length < HISTORY_FIRST
    room.isLoaded = true
    this.countUnread(room)
    this.tell("messages", { room, isReset: true })
  }

  // Whether this node changes messages that were said; an older one does not.
  hasDeeds = true

  async lookForDeeds(room) {
    try { await call("GET", ["channels", room.id, "pins"]) } catch (error) {
      this.hasDeeds = error.code !== "no_route"
    }
    if (!this.hasDeeds) this.tell("messages", { room, isReset: true })
    this.tell("rooms")
  }

  async loadMembers(room) {
    const members = await call("GET", ["channels", room.id, "members"]).catch(() => [])
    room.members = new Map(members.map((member) => [member.peer_id, member]))
    // The node names them in the order in which all members see them raised.
    room.hands = members.filter((member) => member.raise_hand).map((member) => member.peer_id)
    this.tell("members", { room })
  }

  async loadAnnouncement(room) {
    room.announcement = await call("GET", ["channels", room.id, "announcement"]).catch(() => null)
    this.tell("announcement", { room })
  }

  /** Undefined in channels that nobody owns. */
  ownRole(room) { return room.members.get(this.me.peer_id)?.role }

  /** Who is who has changed: marks beside names follow. */
  async refreshPeople() {
    const channels = [...this.rooms.values()].filter((room) => room.kind === "c")
    await Promise.all(channels.map((room) => this.loadMembers(room)))
    this.tell("rooms")
  }

  channel(name) {
    const key = "c:" + name
    if (!this.rooms.has(key)) this.rooms.set(key, new Room("c", name, name))
    return this.rooms.get(key)
  }

  peer(id, name) {
    const key = "p:" + id
    if (!this.rooms.has(key)) {
      this.rooms.set(key, new Room("p", id, name || fingerprint(id)))
      this.keepPeers()
    }
    return this.rooms.get(key)
  }

  keepPeers() {
    const peers = [...this.rooms.values()].filter((room) => room.kind === "p")
    memory.set("peers", peers.slice(-50).map((room) => ({ id: room.id, name: room.title })))
  }

  closePeer(room) {
    this.rooms.delete(room.key)
    this.keepPeers()
    if (this.current === room) this.open(this.sorted[0] ?? null)
    this.tell("rooms")
  }

  /** Whoever is known by this ID, in whatever channel. */
  person(id) {
    let found = null
    for (const room of this.rooms.values()) {
      const member = room.members.get(id)
      if (member && (!found || member.status === "online")) found = member
    }
    return found
  }

  open(room) {
    if (room === this.current) return
    if (this.current) this.markRead(this.current)
    this.current = room
    if (room) {
      memory.set("current", room.key)
      room.marker = room.unread > 0 ? room.messages.find((message) => this.isNew(room, message)) ?? null : null
      if (!document.hidden) this.markRead(room)
      if (!room.isLoaded) this.loadRoom(room)
    }
    this.tell("current")
    this.tell("rooms")
  }

  countUnread(room) {
    if (room.readThrough === null) {
      room.readThrough = room.lastCursor
      memory.set("read." + room.key, room.readThrough)
    }
    room.unread = Math.min(UNREAD_MAX + 1, room.messages.filter((message) => this.isNew(room, message)).length)
  }

  isNew(room, message) {
    return message.cursor > (room.readThrough ?? 0) && message.sender.sender_id !== this.me.peer_id
  }

  markRead(room) {
    this.tellRead(room)
    room.readThrough = Math.max(room.readThrough ?? 0, room.lastCursor)
    room.unread = 0
    memory.set("read." + room.key, room.readThrough)
    this.tell("rooms")
  }

  /** Who asked to be told learns that their messages were read. */
  tellRead(room) {
    if (room.kind !== "c") return
    const isDue = (message) => message.needs_receipt === true && message.sender.sender_id !== this.me.peer_id
      && !message.isReadTold && !message.state?.recalled
      && !message.state?.read_by?.some((deed) => deed.operator_id === this.me.peer_id)
    const due = room.messages.slice(-200).filter(isDue).slice(-64)
    if (due.length === 0) return
    for (const message of due) message.isReadTold = true
    const messages = due.map((message) => ({ sender_id: message.sender.sender_id, message_id: message.message_id }))
    call("POST", ["channels", room.id, "read"], { body: { messages } }).catch(() => null)
  }

  // Messages

  put(room, message, at) {
    const key = keyOf(message)
    if (room.byKey.has(key)) return false
    room.byKey.set(key, message)
    room.messages.splice(at, 0, message)
    return true
  }

  /** Older ones, in front; resolves to how many. */
  async loadOlder(room, limit = HISTORY_MORE) {
    if (room.isAtStart || room.isLoadingOlder) return 0
    room.isLoadingOlder = true
    try {
      const before = room.messages[0]?.cursor
      const older = await call("GET", room.path, { query: { limit, before } })
      const fresh = older.filter((message) => !room.byKey.has(keyOf(message)))
      for (const message of fresh) room.byKey.set(keyOf(message), message)
      room.messages = fresh.concat(room.messages)
      room.isAtStart = older.length < limit
      return fresh.length
    } finally {
      room.isLoadingOlder = false
    }
  }

  /** Reads back until this message is there; resolves to whether it is. */
  async reach(room, message) {
    const key = keyOf(message)
    while (!room.byKey.has(key) && !room.isAtStart) await this.loadOlder(room, HISTORY_JUMP)
    return room.byKey.get(key) ?? null
  }

  /** One that was said before what is shown last: its place is where all members have it. */
  async reorderTail(room) {
    if (room.isReordering) return
    room.isReordering = true
    try {
      const tail = await call("GET", room.path, { query: { limit: TAIL } })
      const keys = new Set(tail.map(keyOf))
      const kept = room.messages.filter((message) => !keys.has(keyOf(message)))
      const first = tail.length > 0 ? room.byKey.get(keyOf(tail[0])) : null
      const at = first ? room.messages.indexOf(first) : -1
      const before = at < 0 ? kept : kept.filter((message) => room.messages.indexOf(message) < at)
      const after = at < 0 ? [] : kept.filter((message) => room.messages.indexOf(message) >= at)
      const known = tail.map((message) => room.byKey.get(keyOf(message)) ?? message)
      for (const message of known) room.byKey.set(keyOf(message), message)
      room.messages = [...before, ...known, ...after]
      this.tell("messages", { room, isReordered: true })
    } finally {
      room.isReordering = false
    }
  }

  take(type, data) {
    switch (type) {
      case "message": return this.takeMessage(data)
      case "member": return this.takeMember(data)
      case "impostor":
        this.takeMember(data)
        this.tell("impostor", data)
        return
      case "delivered": return this.takeDelivered(data)
      case "expired": return this.takeExpired(data)
      case "joined": return this.takeJoined(data.channel)
      case "left": return this.takeLeft(data.channel)
      case "state_changed":
        if (this.status) this.status.state = data.state
        this.reason = data.reason
        this.refreshStatus()
        return
      case "role":
      case "keys_changed":
      case "closed":
      case "token_accepted":
      case "token_refused": {
        const room = this.rooms.get("c:" + data.channel)
        if (room) this.loadMembers(room)
        return
      }
      case "message_changed": return data.messages.forEach((message) => this.changed(message))
      case "typing": return this.takeTyping(data)
      case "announcement": {
        const room = this.rooms.get("c:" + data.channel)
        if (room) Object.assign(room, { announcement: data })
        return this.tell("announcement", { room })
      }
      case "voided":
      case "counted": {
        const room = this.rooms.get("c:" + data.channel)
        if (room) this.loadRoom(room)
        return
      }
      case "dropped":
        for (const room of this.rooms.values()) if (room.kind === "c") this.loadMembers(room)
    }
  }

  takeMessage(message) {
    const isOwn = message.sender.sender_id === this.me.peer_id
    if (message.channel !== null) {
      this.takeTyping({ channel: message.channel, peer_id: message.sender.sender_id, typing: false })
    }
    const room = message.channel !== null
      ? this.rooms.get("c:" + message.channel)
      : this.peer(message.peer, isOwn ? this.person(message.peer)?.display_name : message.sender.display_name)
    if (!room) return
    if (isOwn) this.settle(room, message)
    if (room.byKey.has(keyOf(message))) return
    const last = room.messages.at(-1)
    this.put(room, message, room.messages.length)
    const isSeen = room === this.current && !document.hidden
    if (!isOwn && !isSeen) room.unread = Math.min(UNREAD_MAX + 1, room.unread + 1)
    if (isSeen) this.markRead(room)
    else if (!isOwn && room === this.current && room.unread === 1) room.marker = message
    this.tell("messages", { room, message, isOwn })
    this.tell("rooms")
    if (!isOwn) this.tell("arrived", { room, message })
    if (["photo", "video", "file"].includes(message.type)) this.tell("media", { room })
    if (last && message.timestamp < last.timestamp && room.kind === "c") this.reorderTail(room)
  }

  /** The node has taken one of ours: it is no longer pending. */
  settle(room, message) {
    const same = (pending) => pending.messageID === message.message_id
      || pending.messageID === null && message.type === "text" && pending.text === message.body
    const at = room.pending.findIndex(same)
    if (at >= 0) room.pending.splice(at, 1)
  }

  takeMember(member) {
    const room = this.rooms.get("c:" + member.channel)
    if (!room) return
    room.members.set(member.peer_id, member)
    const at = room.hands.indexOf(member.peer_id)
    if (member.raise_hand && at < 0) room.hands.push(member.peer_id)
    if (!member.raise_hand && at >= 0) room.hands.splice(at, 1)
    this.tell("members", { room, member })
    const chat = this.rooms.get("p:" + member.peer_id)
    if (chat && chat.title !== member.display_name) {
      chat.title = member.display_name
      this.keepPeers()
      this.tell("rooms")
    }
  }

  /** A message that is here says something else now, or something was done to it. */
  changed(message) {
    const room = this.rooms.get(message.channel === null ? "p:" + message.peer : "c:" + message.channel)
    const known = room?.byKey.get(keyOf(message))
    if (!known) return
    const has = new Set([...known.delivered_to, ...message.delivered_to])
    for (const name of Object.keys(known)) delete known[name]
    Object.assign(known, message, { delivered_to: [...has] })
    this.tell("message", { room, message: known, isChanged: true })
    if (known.state?.recalled) this.tell("media", { room })
  }

  /** Somebody writes; a while later not any more, whether they say so or not. */
  takeTyping({ channel, peer_id: peer, typing }) {
    const room = this.rooms.get("c:" + channel)
    if (!room || peer === this.me.peer_id) return
    clearTimeout(room.writers.get(peer))
    const isOver = () => {
      room.writers.delete(peer)
      this.tell("typing", { room })
    }
    if (!typing) return isOver()
    room.writers.set(peer, setTimeout(isOver, TYPING))
    this.tell("typing", { room })
  }

  #typedAt = 0

  /** We have said it: what is written next is told anew. */
  wrote(room) {
    if (room.kind !== "c" || this.#typedAt === 0) return
    this.#typedAt = 0
    call("PUT", ["channels", room.id, "typing"], { body: { typing: false } }).catch(() => null)
  }

  /** We write: told at most every few seconds. */
  writing(room) {
    if (room.kind !== "c" || Date.now() - this.#typedAt < TYPING_AGAIN) return
    this.#typedAt = Date.now()
    call("PUT", ["channels", room.id, "typing"], { body: { typing: true } }).catch(() => null)
  }

  takeDelivered({ channel, message_id: id, delivered_to: peer }) {
    const room = this.rooms.get(channel === null ? "p:" + peer : "c:" + channel)
    const message = room?.byKey.get(`${this.me.peer_id} ${id}`)
    if (!message) {
      const pending = room?.pending.find((item) => item.messageID === id)
      if (pending) pending.deliveredTo.add(peer)
      return
    }
    if (!message.delivered_to.includes(peer)) message.delivered_to.push(peer)
    this.tell("message", { room, message })
  }

  takeExpired({ message_id: id, peer_id: peer }) {
    const room = this.rooms.get("p:" + peer)
    const message = room?.byKey.get(`${this.me.peer_id} ${id}`)
    if (!message) return
    message.isExpired = true
    this.tell("message", { room, message })
  }

  async takeJoined(name) {
    const isNew = !this.rooms.has("c:" + name)
    const room = this.channel(name)
    const channels = await call("GET", ["channels"]).catch(() => [])
    room.isOpen = channels.find((channel) => channel.name === name)?.open ?? room.isOpen
    memory.set("earlier", memory.get("earlier", []).filter((item) => item.name !== name))
    if (isNew || !room.isLoaded) await this.loadRoom(room)
    else await this.loadMembers(room)
    if (!this.current) this.open(room)
    this.tell("rooms")
  }

  takeLeft(name) {
    const room = this.rooms.get("c:" + name)
    if (!room) return
    // A node that stops leaves all its channels, and joins them again: only one that goes on has left for good.
    room.isLeft = true
    setTimeout(async () => {
      if (!room.isLeft || !this.isListening) return
      const channels = await call("GET", ["channels"]).catch(() => null)
      if (channels && this.isListening && !channels.some((channel) => channel.name === name)) this.forget(room)
    }, 1_500)
  }

  /** We left it ourselves, for good. */
  forget(room) {
    const earlier = memory.get("earlier", []).filter((item) => item.name !== room.id)
    // Into a channel that somebody owns one comes by a link.
    const again = this.ownRole(room) ? [] : [{ name: room.id, isOpen: room.isOpen }]
    memory.set("earlier", [...again, ...earlier].slice(0, 30))
    this.rooms.delete(room.key)
    if (this.current === room) this.open(this.sorted[0] ?? null)
    this.tell("rooms")
  }

  async listening(isOpen) {
    const wasListening = this.isListening
    this.isListening = isOpen
    this.tell("status")
    if (!isOpen || wasListening) return
    // Members and deliveries have no cursor: what changed meanwhile is read again.
    await this.refreshStatus()
    const names = new Set(this.status?.channels.map((channel) => channel.name))
    for (const room of [...this.rooms.values()]) {
      if (room.kind !== "c") continue
      if (names.has(room.id)) this.refresh(room)
      else if (room.isLeft) this.forget(room)
    }
    for (const name of names) if (!this.rooms.has("c:" + name)) this.takeJoined(name)
  }

  async refresh(room) {
    room.isLeft = false
    this.loadMembers(room)
    const tail = await call("GET", room.path, { query: { limit: TAIL } }).catch(() => [])
    for (const message of tail) {
      const known = room.byKey.get(keyOf(message))
      if (!known) continue
      if (JSON.stringify(known.state) !== JSON.stringify(message.state)) {
        this.changed(message)
        continue
      }
      if (known.delivered_to.length === message.delivered_to.length) continue
      known.delivered_to = message.delivered_to
      this.tell("message", { room, message: known })
    }
    this.tell("media", { room })
  }

  async refreshStatus() {
    try {
      this.status = await call("GET", ["status"])
    } catch { /* the events say when it is back */ }
    this.tell("status")
  }

  // What the user does

  async send(room, text) {
    const answered = room.answered
    room.answered = null
    this.wrote(room)
    const pending = {
      text, answered, state: "sending", messageID: null, error: "", deliveredTo: new Set(), at: new Date(),
    }
    room.pending.push(pending)
    this.tell("messages", { room, isOwn: true })
    await this.attempt(room, pending)
  }

  async attempt(room, pending) {
    pending.state = "sending"
    this.tell("messages", { room })
    try {
      const body = { body: pending.text }
      if (pending.answered) {
        const { sender, message_id: id } = pending.answered
        body.reply_to = { sender_id: sender.sender_id, message_id: id }
      }
      const answer = await call("POST", room.path, { body })
      pending.messageID = answer.message_id
      const message = room.byKey.get(`${this.me.peer_id} ${answer.message_id}`)
      // Its event may have come first.
      if (message) room.pending = room.pending.filter((item) => item !== pending)
      else pending.state = "sent"
      const delivered = answer.outcome === "delivered" ? [room.id] : answer.delivered_to ?? []
      for (const peer of delivered) {
        if (message && !message.delivered_to.includes(peer)) message.delivered_to.push(peer)
      }
      if (message) this.tell("message", { room, message })
    } catch (error) {
      pending.state = "failed"
      pending.error = error.code === "message_too_long" ? "tooLong" : error.message
    }
    this.tell("messages", { room })
  }

  discard(room, pending) {
    room.pending = room.pending.filter((item) => item !== pending)
    this.tell("messages", { room })
  }

  hasRaised(room) { return room.members.get(this.me.peer_id)?.raise_hand === true }

  async setHand(room, raised) {
    await call("PUT", ["channels", room.id, "hand"], { body: { raised } })
  }

  async join(name, passphrase) {
    const secret = passphrase === null ? { open: true } : { passphrase }
    const answer = await call("POST", ["channels"], { body: { name, ...secret } })
    await this.takeJoined(answer.name)
    this.open(this.rooms.get("c:" + answer.name))
    return answer
  }

  async joinByLink(link) {
    const answer = await call("POST", ["invitations"], { body: { link } })
    await this.takeJoined(answer.name)
    this.open(this.rooms.get("c:" + answer.name))
  }

  /** A new channel that this node owns. */
  async create(name) {
    const answer = await call("POST", ["owned-channels"], { body: { name } })
    await this.takeJoined(answer.name)
    this.open(this.rooms.get("c:" + answer.name))
  }

  async leave(room) {
    await call("DELETE", ["channels", room.id])
    this.forget(room)
  }
}

export const store = new Store()
