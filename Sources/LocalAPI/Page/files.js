// Files: what was shared, how downloads go, and what this browser sends.
import { address, call, upload } from "/api.js"
import { cleanName, el, nameOf } from "/dom.js"
import { bytes, duration, t } from "/texts.js"
import { store } from "/store.js"

// Milliseconds between looks at downloads that run.
const INTERVAL = 500

/** The node's list of downloads, looked at while something runs or the list is shown. */
class Downloads extends EventTarget {
  list = []
  watchers = 0
  #timer = 0

  /** The newest of a media ID that goes to the disk. */
  of(id) { return this.list.findLast((item) => item.media_id === id && item.target !== null) ?? null }

  async look() {
    clearTimeout(this.#timer)
    try {
      this.list = await call("GET", ["downloads"])
      this.dispatchEvent(new Event("change"))
    } catch { /* the node is away */ }
    const isActive = this.list.some((item) => item.target !== null && ["running", "queued"].includes(item.state))
    clearTimeout(this.#timer)
    if (isActive) this.#timer = setTimeout(() => this.look(), INTERVAL)
  }

  async act(method, parts) {
    try { await call(method, ["downloads", ...parts]) } catch { /* it has just ended */ }
    await this.look()
  }
}

export const downloads = new Downloads()

async function begin(media, problem) {
  problem.textContent = ""
  try {
    await call("POST", ["downloads"], { body: { media_id: media.media_id, detached: true } })
  } catch (error) {
    problem.textContent = t("failedWhy", error.message)
  }
  await downloads.look()
}

/** A link that saves it with the browser. What is saved is a file, whatever it holds: the node says so. */
export function saveLink(media) {
  return el("a", {
    class: "button", href: address(["media", media.media_id, "bytes"]), download: cleanName(media.file_name),
    "aria-label": t("saveOf", cleanName(media.file_name)), text: t("save"),
  })
}

/** Buttons and progress of one file; they follow the list of downloads while they are in the document. */
export function fileActions(room, media) {
  const box = el("div", { class: "file-actions" })
  const problem = el("p", { class: "problem", role: "status" })
  const isFolder = media.mime_type === "inode/directory" || media.mime === "inode/directory"
  let shown = null
  const show = () => {
    const item = downloads.of(media.media_id)
    const what = item ? `${item.download_id} ${item.state}` : "none"
    if (what === shown) return item && box.update?.(item)
    const hadFocus = box.contains(document.activeElement)
    shown = what
    box.update = null
    box.replaceChildren(...(item ? downloadParts(box, item) : []))
    if (!item || item.state === "failed") {
      box.append(el("p", { class: "actions" },
        el("button", {
          type: "button", text: t("download"), "aria-label": t("downloadOf", cleanName(media.file_name)),
          onclick: () => begin(media, problem),
        }), !isFolder && saveLink(media)))
    }
    if (hadFocus) box.querySelector("button, a")?.focus()
  }
  const isOwn = media.sender?.sender_id === store.me.peer_id
  if (isOwn) return media.type === "photo" ? [] : [el("p", { class: "quiet", text: t("sharedHere") })]
  const follow = () => {
    if (box.wasShown && !box.isConnected) return downloads.removeEventListener("change", follow)
    box.wasShown = box.isConnected
    show()
  }
  downloads.addEventListener("change", follow)
  show()
  return [box, problem]
}

function downloadParts(box, item) {
  const bar = el("progress", { max: "1", "aria-label": t("downloadOf", cleanName(item.file_name)) })
  const line = el("p", { class: "quiet" })
  const button = (text, act) => el("button", { type: "button", text, onclick: act })
  const id = String(item.download_id)
  box.update = (now) => {
    if (now.size > 0) bar.value = now.received / now.size
    const parts = now.state === "queued" ? [t("queued")] : now.state === "paused" ? [t("paused")] : []
    parts.push(t("progress", bytes(now.received), bytes(now.size)))
    if (now.rate > 0) parts.push(t("rate", bytes(now.rate)))
    if (now.seconds_left !== null) parts.push(t("left", duration(now.seconds_left)))
    line.textContent = parts.join(" · ")
  }
  box.update(item)
  switch (item.state) {
    case "running":
    case "queued":
      return [bar, line, el("p", { class: "actions" },
        button(t("pauseIt"), () => downloads.act("POST", [id, "pause"])),
        button(t("cancel"), () => downloads.act("DELETE", [id])))]
    case "paused":
      return [bar, line, el("p", { class: "actions" },
        button(t("resume"), () => downloads.act("POST", [id, "resume"])),
        button(t("cancel"), () => downloads.act("DELETE", [id])))]
    case "finished":
      box.update = null
      return finishedParts(item, id)
    default:
      box.update = null
      return [el("p", { class: "problem", text: t("failedWhy", item.problem?.detail ?? "") })]
  }
}

/** On this machine: the desktop opens it, unless it might run something. */
function finishedParts(item, id) {
  const problem = el("p", { class: "problem", role: "status" })
  const ask = async (what) => {
    problem.textContent = ""
    try {
      await call("POST", ["downloads", id, what])
    } catch (error) {
      problem.textContent = error.message
    }
  }
  const name = cleanName(item.file_name)
  const button = (what, text, label) =>
    el("button", { type: "button", text, "aria-label": label, onclick: () => ask(what) })
  return [el("p", { class: "quiet done" }, t("finishedAt", ""), el("bdi", { text: cleanName(item.path) })),
    el("p", { class: "actions" }, item.opens && button("open", t("openIt"), t("openOf", name)),
      button("reveal", t("reveal"), t("revealOf", name))), problem]
}

/** The table of a channel's files. */
export class FileTable {
  constructor() {
    this.body = el("div", { class: "file-list" })
    this.element = el("section", { class: "panel-part", "aria-labelledby": "files-title" },
      el("h2", { id: "files-title", text: t("files") }), this.body)
    store.addEventListener("media", (event) => { if (event.detail.room === this.room) this.load() })
  }

  async show(room) {
    this.room = room
    await Promise.all([downloads.look(), this.load()])
  }

  async load() {
    const room = this.room
    if (!room || room.kind !== "c" || !this.element.isConnected) return
    try {
      room.media = await call("GET", ["channels", room.id, "media"])
    } catch {
      return
    }
    if (room !== this.room) return
    const list = room.media.toReversed().slice(0, 500)
    if (list.length === 0) return this.body.replaceChildren(el("p", { class: "quiet", text: t("noFiles") }))
    const columns = ["file", "from", "holders", "state"].map((name) => el("th", { scope: "col", text: t(name) }))
    this.body.replaceChildren(el("table", {},
      el("thead", {}, el("tr", {}, columns)), el("tbody", {}, list.map((media) => this.row(room, media)))))
  }

  row(room, media) {
    const isOwn = media.sender.sender_id === store.me.peer_id
    const state = isOwn
      ? [el("button", {
        type: "button", text: t("unshare"), "aria-label": t("unshareOf", cleanName(media.file_name)),
        onclick: async (event) => {
          event.target.disabled = true
          await call("DELETE", ["media", media.media_id]).catch(() => null)
          this.load()
        },
      })]
      : [media.held_here && el("p", { class: "quiet", text: t("onThisMachine") }), fileActions(room, media)]
    return el("tr", {},
      el("th", { scope: "row" }, nameOf(media.file_name, "file-name"), el("br"),
        el("span", { class: "size", text: bytes(media.size) })),
      el("td", {}, nameOf(isOwn ? t("you") : media.sender.display_name, "name")),
      el("td", { text: t("holdersCount", media.holders) }),
      el("td", {}, ...state.flat()))
  }
}

/** Files on their way to the node, one after the other. */
export class Uploads {
  #queue = []
  #isRunning = false

  constructor() {
    this.element = el("ul", { class: "uploads", "aria-live": "off" })
  }

  add(room, files) {
    for (const file of files) {
      const bar = el("progress", { max: "1", value: "0", "aria-label": t("uploading", cleanName(file.name)) })
      const line = el("span", { class: "quiet", text: bytes(file.size) })
      const abort = new AbortController()
      const cancel = el("button", { type: "button", text: t("cancel"), onclick: () => abort.abort() })
      const row = el("li", {}, el("span", { class: "upload-name" }, t("uploading", ""), nameOf(file.name, "file-name")),
        bar, line, cancel)
      this.element.append(row)
      const job = { room, file, bar, line, row, cancel, abort }
      abort.signal.addEventListener("abort", () => {
        this.#queue = this.#queue.filter((other) => other !== job)
        row.remove()
      })
      this.#queue.push(job)
    }
    this.#run()
  }

  async #run() {
    if (this.#isRunning) return
    this.#isRunning = true
    while (this.#queue.length > 0) await this.#send(this.#queue.shift())
    this.#isRunning = false
  }

  async #send({ room, file, bar, line, row, cancel, abort }) {
    const start = performance.now()
    const progress = (count) => {
      bar.value = file.size > 0 ? count / file.size : 1
      const seconds = (performance.now() - start) / 1_000
      const rate = seconds > 0 ? count / seconds : 0
      const parts = [t("progress", bytes(count), bytes(file.size))]
      if (seconds > 0.5 && rate > 0) parts.push(t("rate", bytes(rate)), t("left", duration((file.size - count) / rate)))
      line.textContent = count >= file.size ? t("reading") : parts.join(" · ")
      if (count >= file.size) bar.removeAttribute("value")
    }
    try {
      const kind = /^image\/(jpeg|png|gif|webp|avif|heic|tiff)$/.test(file.type) ? "photo" : undefined
      const query = { name: file.name, as: kind }
      const parts = ["channels", room.id, "uploads"]
      try {
        await upload(parts, query, file, progress, abort.signal)
      } catch (error) {
        // What only calls itself a picture is still a file.
        if (!kind || error.status !== 400) throw error
        await upload(parts, { name: file.name, as: "file" }, file, progress, abort.signal)
      }
      row.remove()
    } catch (error) {
      if (error.code === "cancelled") return row.remove()
      bar.remove()
      line.className = "problem"
      line.setAttribute("role", "alert")
      line.textContent = t("couldNotShare", cleanName(file.name), error.code === "unreachable" ? t("nodeAway")
        : error.message)
      cancel.textContent = t("close")
      cancel.onclick = () => row.remove()
    }
  }
}
