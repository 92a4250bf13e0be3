// The conversation: only what is near the eye is in the document, however much there is.
import { el } from "/dom.js"
import { t } from "/texts.js"
import { store } from "/store.js"
import { messageRow, pendingRow, updateRow } from "/message.js"

// Rows in the document at most, and how many come or go at once. A screen shows some 20.
const ROWS_MAX = 120
const STEP = 40
// Pixels from an end at which more rows come.
const NEAR = 900

export class Timeline {
  room = null
  // The rows in the document are messages first…last-1 of the room, and its pending ones if last is the end.
  first = 0
  last = 0
  rows = new Map()
  isAtBottom = true

  constructor() {
    this.list = el("ol", { class: "rows" })
    this.top = el("p", { class: "note" })
    this.pendingList = el("ol", { class: "rows" })
    this.scroller = el("div", {
      class: "timeline", tabindex: "0", role: "region", "aria-label": t("messages"),
      onscroll: () => this.#scrolled(),
    }, this.top, this.list, this.pendingList)
    this.toEnd = el("button", { type: "button", class: "to-end", hidden: true, onclick: () => this.showEnd() },
      t("toNewest"), " ↓")
    this.element = el("div", { class: "timeline-frame" }, this.scroller, this.toEnd)
    // Also when a row grows, such as by a picture or a bar of progress.
    const observer = new ResizeObserver(() => { if (this.isAtBottom) this.#toBottom() })
    for (const element of [this.scroller, this.list, this.pendingList]) observer.observe(element)
  }

  show(room) {
    this.room = room
    this.showEnd()
  }

  showEnd() {
    const count = this.room?.messages.length ?? 0
    this.#render(Math.max(0, count - ROWS_MAX / 2), count)
    this.#toBottom()
  }

  /** Something changed in the room that is shown. */
  update({ isReset, isReordered, isOwn } = {}) {
    const room = this.room
    if (isReset) return this.showEnd()
    const wasAtEnd = this.last >= this.#knownCount
    this.#knownCount = room.messages.length
    if (isReordered) {
      const count = room.messages.length
      this.#keeping(() => this.#render(Math.min(this.first, count), count - this.#behind()))
    } else if (wasAtEnd && (this.isAtBottom || isOwn)) {
      this.#render(Math.max(0, Math.min(this.first, room.messages.length), room.messages.length - ROWS_MAX),
        room.messages.length)
    } else if (wasAtEnd) {
      this.#keeping(() => this.#render(this.first, room.messages.length))
    }
    this.#showPending()
    if (this.isAtBottom || isOwn) this.#toBottom()
    this.toEnd.hidden = this.isAtBottom
  }

  #knownCount = 0
  #behind() { return this.last >= this.room.messages.length ? 0 : Math.max(0, this.room.messages.length - this.last) }

  updateMessage(message, isChanged) {
    const row = this.rows.get(message)
    if (!row) return
    if (!isChanged) return updateRow(row, this.room, message)
    const hadFocus = row.contains(document.activeElement)
    this.rows.delete(message)
    this.#keeping(() => this.#render(this.first, this.last))
    if (this.isAtBottom) this.#toBottom()
    if (hadFocus) this.rows.get(message)?.querySelector(".more")?.focus()
  }

  updatePeople() {
    for (const [message, row] of this.rows) updateRow(row, this.room, message)
  }

  /** Brings a message into view and the keyboard to it. */
  async reveal(message) {
    const room = this.room
    const found = await store.reach(room, message)
    if (!found || room !== this.room) return
    const at = room.messages.indexOf(found)
    this.#render(Math.max(0, at - ROWS_MAX / 2), Math.min(room.messages.length, at + ROWS_MAX / 2))
    const row = this.rows.get(found)
    this.isAtBottom = false
    row.scrollIntoView({ block: "center" })
    row.tabIndex = -1
    row.focus({ preventScroll: true })
    row.classList.add("found")
    this.#scrolled()
  }

  #render(first, last) {
    const room = this.room
    this.first = first
    this.last = last
    this.#knownCount = room?.messages.length ?? 0
    const rows = new Map()
    for (let index = first; index < last; index++) {
      const message = room.messages[index]
      const before = room.messages[index - 1] ?? null
      let row = this.rows.get(message)
      // What stands above a row decides whether it names the day and the sender.
      if (!row || row.before !== before) {
        row = messageRow(room, message, before)
        row.before = before
      }
      rows.set(message, row)
    }
    const wanted = [...rows.values()]
    const keep = new Set(wanted)
    for (const row of [...this.list.children]) if (!keep.has(row)) row.remove()
    let at = this.list.firstElementChild
    for (const row of wanted) {
      if (row === at) { at = at.nextElementSibling; continue }
      this.list.insertBefore(row, at)
    }
    this.rows = rows
    this.top.textContent = !room ? "" : first > 0 || !room.isAtStart ? t("loading")
      : room.messages.length > 0 ? t("beginning") : t("nothingYet")
    this.#showPending()
  }

  #showPending() {
    const room = this.room
    if (!room || this.last < room.messages.length) return this.pendingList.replaceChildren()
    this.pendingList.replaceChildren(...room.pending.map((pending) => pendingRow(room, pending)))
  }

  /** Changes rows and leaves what is read where it is. */
  #keeping(change) {
    const top = this.scroller.getBoundingClientRect().top
    const anchor = [...this.list.children].find((row) => row.getBoundingClientRect().bottom > top)
    const before = anchor?.getBoundingClientRect().top
    change()
    if (!anchor?.isConnected) return
    const moved = anchor.getBoundingClientRect().top - before
    if (moved !== 0) this.scroller.scrollTop += moved
  }

  #toBottom() {
    this.isAtBottom = true
    this.scroller.scrollTop = this.scroller.scrollHeight
    this.toEnd.hidden = true
  }

  #isWaiting = false

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller
    if (!this.room) return
    const isEnd = this.last >= this.room.messages.length
    this.isAtBottom = isEnd && scrollTop + clientHeight > scrollHeight - 40
    this.toEnd.hidden = this.isAtBottom
    if (this.#isWaiting) return
    if (scrollTop < NEAR && (this.first > 0 || !this.room.isAtStart)) this.#later(() => this.#older())
    else if (!isEnd && scrollTop + clientHeight > scrollHeight - NEAR) this.#later(() => this.#newer())
  }

  /** Once a frame: a wheel sends many events. */
  #later(job) {
    this.#isWaiting = true
    requestAnimationFrame(async () => {
      // At the very top no more scrolling comes that could ask again.
      let pause = 0
      try { await job() } catch { pause = 1_000 }
      this.#isWaiting = false
      setTimeout(() => this.#scrolled(), pause)
    })
  }

  async #older() {
    const room = this.room
    if (this.first < STEP) {
      const count = await store.loadOlder(room)
      if (room !== this.room) return
      this.first += count
      this.last += count
      this.#knownCount = room.messages.length
    }
    const first = Math.max(0, this.first - STEP)
    this.#keeping(() => this.#render(first, Math.min(this.last, first + ROWS_MAX)))
  }

  async #newer() {
    const last = Math.min(this.room.messages.length, this.last + STEP)
    this.#keeping(() => this.#render(Math.max(this.first, last - ROWS_MAX), last))
  }
}

