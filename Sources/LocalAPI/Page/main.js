// The page: puts the parts together and listens to the keyboard.
import { logIn } from "/api.js"
import { arrowKeys, cleanName, el, fingerprint, nameOf, openDialog, recognitionMark, showRows } from "/dom.js"
import { icon } from "/icons.js"
import { language, languages, t } from "/texts.js"
import { memory, store } from "/store.js"
import { Announcement } from "/channels.js"
import { Composer } from "/composer.js"
import { openPins } from "/deeds.js"
import { doctorPart } from "/doctor.js"
import { downloads, FileTable } from "/files.js"
import { openJoin } from "/join.js"
import { spoken } from "/message.js"
import { People } from "/people.js"
import { Search } from "/search.js"
import { Timeline } from "/timeline.js"
import { openVerify } from "/verify.js"

/** Then a panel covers the conversation. */
const isNarrow = () => matchMedia("(max-width: 900px)").matches

const live = document.getElementById("live")
const timeline = new Timeline()
const composer = new Composer()
const people = new People((room) => {
  store.open(room)
  if (isNarrow()) showPart(null)
  composer.focus()
}, () => leaveRoom())
const files = new FileTable()
const search = new Search(async (room, message) => {
  if (!room) return
  store.open(room)
  if (isNarrow()) showPart(null)
  await timeline.reveal(message)
})

// Parts of the page

const roomList = el("ul", { class: "rooms" })
const peerList = el("ul", { class: "rooms" })
const peerTitle = el("h2", { text: t("people") })
const stateLine = el("button", {
  type: "button", class: "state-line", title: t("details"), onclick: () => showDetails(),
})
const title = el("h1", {})
const subtitle = el("p", { class: "quiet" })
const hand = el("button", {
  type: "button", class: "hand-button", "aria-keyshortcuts": "h", onclick: () => toggleHand(),
})
const who = el("button", { type: "button", text: t("verify"), onclick: () => openVerify(store.current) })
const panel = el("aside", { class: "panel", hidden: true, "aria-label": t("details") })
const panelButtons = {
  members: panelButton("members", "people"),
  files: panelButton("files", "folder"),
  search: panelButton("search", "search"),
}
const pins = el("button", {
  type: "button", class: "icon", "aria-label": t("pins"), title: t("pins"),
  onclick: () => openPins(store.current, (message) => timeline.reveal(message)),
}, icon("pin"))
const menu = el("button", {
  type: "button", class: "icon menu", "aria-label": t("menu"), "aria-expanded": "false",
  onclick: () => showMenu(!document.body.classList.contains("menu-open")),
}, icon("menu"))
const sidebar = el("nav", { class: "sidebar", "aria-label": t("channels") },
  el("div", { class: "sidebar-lists" },
    el("h2", { text: t("channels") }), roomList,
    el("p", {}, el("button", { type: "button", class: "primary wide", text: t("joinChannel"),
      "aria-keyshortcuts": "j", onclick: () => join() })),
    peerTitle, peerList),
  el("div", { class: "sidebar-foot" }, stateLine,
    el("button", { type: "button", class: "icon", "aria-label": t("notify"), title: t("notify"),
      onclick: () => askToNotify() }, icon("bell")),
    el("button", { type: "button", class: "icon", text: "?", "aria-label": t("keys"), title: t("keys"),
      onclick: () => showKeys() })))
const header = el("header", { class: "room-header" }, menu,
  el("div", { class: "room-title" }, title, subtitle),
  el("div", { class: "room-actions" }, hand, who, pins, ...Object.values(panelButtons)))
const banner = el("p", { class: "banner", role: "status", hidden: true })
const empty = el("div", { class: "empty", hidden: true }, el("p", { text: t("noChannels") }),
  el("p", {}, el("button", { type: "button", class: "primary", text: t("joinChannel"), onclick: () => join() })))
const announcement = new Announcement()
const main = el("main", { class: "room" }, header, banner, announcement.element, empty, timeline.element,
  composer.element)

function panelButton(name, sign) {
  return el("button", {
    type: "button", class: "icon", "aria-label": t(name), title: t(name), "aria-expanded": "false",
    onclick: () => showPanel(openPanel === name ? null : name),
  }, icon(sign))
}

let openPanel = null

/** As the user wishes, also the next time. */
function showPanel(name) {
  showPart(name)
  if (!isNarrow()) memory.set("panel", openPanel ?? "none")
  if (openPanel === "search") search.focus()
}

function showPart(name) {
  const part = { members: people, files, search }[name]
  openPanel = part ? name : null
  for (const [other, button] of Object.entries(panelButtons)) {
    button.setAttribute("aria-expanded", String(other === openPanel))
  }
  panel.hidden = !part
  document.body.classList.toggle("panel-open", Boolean(part))
  const before = panel.contains(document.activeElement)
  panel.replaceChildren(...(part ? [
    el("button", { type: "button", class: "icon close", "aria-label": t("close"), onclick: () => showPanel(null) },
      icon("close")), part.element] : []))
  if (part) part.show(store.current)
  if (before) composer.focus()
}

function showMenu(isOpen) {
  document.body.classList.toggle("menu-open", isOpen)
  menu.setAttribute("aria-expanded", String(isOpen))
  if (isOpen) sidebar.querySelector("button")?.focus()
}

// What is shown

function roomRow(room) {
  return el("li", {},
    el("button", {
      type: "button", "aria-current": room === store.current ? "page" : null,
      class: room.unread > 0 ? "has-unread" : "",
      onclick: () => {
        store.open(room)
        showMenu(false)
        composer.focus()
      },
    },
    room.kind === "p" && el("span", { class: "dot " + statusOf(room), "aria-hidden": "true" }),
    nameOf(room.title, "name"),
    room.unread > 0 && el("span", { class: "badge", role: "img", "aria-label": t("unread", room.unread),
      text: room.unread > 99 ? "99+" : String(room.unread) })),
    room.kind === "p" && el("button", { type: "button", class: "icon", "aria-label": t("forget", cleanName(room.title)),
      onclick: () => store.closePeer(room) }, icon("close")))
}

const statusOf = (room) => store.person(room.id)?.status ?? "offline"

function showRooms() {
  const rooms = store.sorted
  const peers = rooms.filter((room) => room.kind === "p")
  const shown = (room) => [room.title, room.unread, room === store.current, room.kind === "p" && statusOf(room)]
  const show = (list, items) => showRows(list, items, (room) => room.key, shown, roomRow)
  show(roomList, rooms.filter((room) => room.kind === "c"))
  show(peerList, peers)
  peerTitle.hidden = peers.length === 0
  const unread = rooms.reduce((sum, room) => sum + room.unread, 0)
  const name = store.current ? cleanName(store.current.title) + " — Parley" : "Parley"
  document.title = unread > 0 ? `(${unread > 99 ? "99+" : unread}) ${name}` : name
}

function showHeader() {
  const room = store.current
  empty.hidden = room !== null
  timeline.element.hidden = room === null
  header.classList.toggle("is-empty", room === null)
  title.replaceChildren(...(room ? [nameOf(room.title, "name")] : []))
  const isChannel = room?.kind === "c"
  hand.hidden = !isChannel
  who.hidden = isChannel
  pins.hidden = !isChannel || !store.hasDeeds
  for (const name of ["members", "files"]) panelButtons[name].hidden = !isChannel
  if (!room) return subtitle.replaceChildren()
  if (isChannel) {
    const members = [...room.members.values()]
    const online = members.filter((member) => member.status === "online").length
    subtitle.textContent = `${t("membersHere", online, members.length)} · ${
      t(store.ownRole(room) ? "ownedChannel" : room.isOpen ? "openChannel" : "closedChannel")}`
    const isUp = store.hasRaised(room)
    hand.setAttribute("aria-pressed", String(isUp))
    hand.replaceChildren(icon("hand"), el("span", { class: "hand-text", text: t(isUp ? "lower" : "raise") }))
    hand.setAttribute("aria-label", t(isUp ? "lower" : "raise"))
  } else {
    subtitle.replaceChildren(el("span", { class: "fingerprint", text: fingerprint(room.id) }),
      ` · ${t(statusOf(room) === "online" ? "here" : "away")} `,
      recognitionMark(store.person(room.id)?.recognition, t) ?? "")
  }
}

function showStatus() {
  const status = store.status
  const isThere = store.isListening
  const state = isThere ? status?.state ?? "connecting" : "away"
  const heard = isThere && status?.nodes_heard > 0 ? " · " + t("heard", status.nodes_heard) : ""
  stateLine.className = "state-line " + state
  stateLine.replaceChildren(el("span", { class: "dot " + (state === "connected" ? "online" : "offline"),
    "aria-hidden": "true" }), isThere ? t(state) + heard : t("reconnecting"))
  const troubles = status?.troubles ?? []
  let text = ""
  if (!isThere && store.wasListening) text = t("nodeAway")
  else if (isThere && status && status.state !== "connected") text = [t(status.state), store.reason].join(" ").trim()
  else if (isThere && troubles.length > 0) text = troubles.join(" ")
  if (isThere) store.wasListening = true
  if (banner.textContent !== text) banner.textContent = text
  banner.hidden = text === ""
}

async function showDetails() {
  await store.refreshStatus()
  const status = store.status
  if (!status) return
  const troubles = status.troubles.map((line) => el("p", { text: line }))
  const pair = (name, ...value) => [el("dt", { text: name }), el("dd", {}, ...value)]
  const picker = el("select", { id: "language", onchange: (event) => {
    try { localStorage.setItem("parley.language", event.target.value) } catch { /* only for now, then */ }
    location.reload()
  } }, Object.entries(languages).map(([code, name]) =>
    el("option", { value: code, selected: code === language, lang: code, text: name })))
  openDialog({ text: t("details"), close: t("close") }, "small",
    el("dl", {},
      ...pair(t("you"), nameOf(status.display_name, "name"), " ",
        el("span", { class: "fingerprint", text: status.fingerprint })),
      ...pair(t("yourID"), el("span", { class: "id", text: status.peer_id })),
      ...pair(t("state"), t(store.isListening ? status.state : "reconnecting"), " ", store.reason),
      ...pair(t("interfaces"), ...status.interfaces.map((line) => el("p", { text: line }))),
      ...pair(t("sessions"), String(status.sessions), ", ", t("heard", status.nodes_heard)),
      ...(troubles.length > 0 ? pair(t("troubles"), ...troubles) : [])),
    doctorPart(),
    el("p", {}, el("label", { for: "language", text: t("language") + " " }), picker))
}

function showKeys() {
  openDialog({ text: t("keys"), close: t("close") }, "small",
    el("dl", { class: "keys" }, t("keysList").flatMap(([key, what]) =>
      [el("dt", {}, el("kbd", { text: key })), el("dd", { text: what })])))
}

// What is done

const join = () => openJoin(() => composer.focus())

async function toggleHand() {
  const room = store.current
  if (room?.kind !== "c") return
  const raised = !store.hasRaised(room)
  try {
    await store.setHand(room, raised)
    say(t(raised ? "raised" : "lowered"))
  } catch { /* the state line says why */ }
}

async function leaveRoom() {
  const room = store.current
  if (room?.kind !== "c") return
  const dialog = openDialog({ text: t("leave"), close: t("close") }, "small",
    el("p", { text: t("leaveAsk", cleanName(room.title)) }),
    el("p", { class: "actions" },
      el("button", { type: "button", class: "primary", text: t("leave"), onclick: async () => {
        dialog.close()
        await store.leave(room).catch(() => null)
      } }),
      el("button", { type: "button", text: t("cancel"), onclick: () => dialog.close() })))
}

function say(text) {
  const line = el("p", { text })
  live.append(line)
  while (live.childElementCount > 10) live.firstElementChild.remove()
}

async function askToNotify() {
  const answer = "Notification" in window ? await Notification.requestPermission() : "denied"
  openDialog({ text: t("notify"), close: t("close") }, "small",
    el("p", { text: t(answer === "granted" ? "notifyOn" : "notifyDenied") }))
}

function notify(room, message) {
  if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return
  const note = new Notification(cleanName(room.title), { body: spoken(message), tag: room.key, icon: "/icon.svg" })
  note.onclick = () => {
    window.focus()
    store.open(room)
    note.close()
  }
}

function neighbour(step) {
  const rooms = store.sorted
  if (rooms.length === 0) return
  const at = rooms.indexOf(store.current)
  store.open(rooms[(at + step + rooms.length) % rooms.length])
}

function keyPressed(event) {
  if (event.defaultPrevented || document.querySelector("dialog[open]")) return
  if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
    event.preventDefault()
    return neighbour(event.key === "ArrowUp" ? -1 : 1)
  }
  if (event.key === "Escape") {
    if (document.body.classList.contains("menu-open")) {
      showMenu(false)
      menu.focus()
    } else if (openPanel) {
      panelButtons[openPanel].focus()
      showPanel(null)
    } else {
      composer.focus()
    }
    return
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return
  const actions = { h: toggleHand, "/": () => showPanel("search"), j: () => join(), "?": showKeys }
  const action = actions[event.key]
  if (!action) return
  event.preventDefault()
  action()
}

// Beginning

function begin() {
  arrowKeys(roomList)
  arrowKeys(peerList)
  const app = document.getElementById("app")
  app.replaceChildren(
    el("a", { class: "skip", href: "#message", text: t("skip"), onclick: (event) => {
      event.preventDefault()
      composer.focus()
    } }), sidebar, main, panel)
  sidebar.after(el("div", { class: "shade", onclick: () => showMenu(false) }))
  store.addEventListener("rooms", () => { showRooms(); showHeader() })
  store.addEventListener("current", () => {
    showHeader()
    timeline.show(store.current)
    announcement.show(store.current)
    composer.show(store.current)
    if (store.current && performance.getEntriesByName("conversation").length === 0) {
      requestAnimationFrame(() => performance.mark("conversation"))
    }
    const wanted = openPanel ?? (isNarrow() ? null : memory.get("panel", "members"))
    showPart(store.current?.kind === "c" ? wanted : null)
  })
  store.addEventListener("messages", ({ detail }) => {
    if (detail.room === store.current) timeline.update(detail)
  })
  store.addEventListener("message", ({ detail }) => {
    if (detail.room === store.current) timeline.updateMessage(detail.message, detail.isChanged)
  })
  store.addEventListener("members", ({ detail }) => {
    if (detail.room === store.current) {
      scheduleMembers()
    }
  })
  store.addEventListener("announcement", ({ detail }) => {
    if (detail.room === store.current) announcement.show(store.current)
  })
  store.addEventListener("typing", ({ detail }) => {
    if (detail.room === store.current) composer.showWriters()
  })
  store.addEventListener("reply", ({ detail }) => composer.answer(detail.room, detail.message))
  store.addEventListener("edit", ({ detail }) => composer.edit(detail.room, detail.message))
  store.addEventListener("reveal", ({ detail }) => {
    if (detail.room === store.current) timeline.reveal(detail.message)
  })
  store.addEventListener("impostor", ({ detail }) => {
    openDialog({ text: t("posesAsShort"), close: t("close") }, "small", el("p", { class: "problem", role: "alert" },
      t("impostor", cleanName(detail.display_name), cleanName(detail.channel), fingerprint(detail.peer_id))))
  })
  store.addEventListener("status", () => showStatus())
  store.addEventListener("arrived", ({ detail: { room, message } }) => {
    if (room === store.current) say(spoken(message))
    notify(room, message)
  })
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && store.current) store.markRead(store.current)
  })
  document.addEventListener("keydown", keyPressed)
  // Files can be dropped anywhere: a browser would else leave the page for them.
  let depth = 0
  const follow = (change) => {
    depth = Math.max(0, depth + change)
    document.body.classList.toggle("dropping", depth > 0)
  }
  main.dataset.drop = t("dropHere")
  document.addEventListener("dragenter", (event) => { event.preventDefault(); follow(1) })
  document.addEventListener("dragleave", () => follow(-1))
  document.addEventListener("dragover", (event) => event.preventDefault())
  document.addEventListener("drop", (event) => {
    event.preventDefault()
    follow(-depth)
    composer.drop(event.dataTransfer)
  })
}

let membersDue = false
// Once a frame: a channel of thousands tells of each.
function scheduleMembers() {
  if (membersDue) return
  membersDue = true
  requestAnimationFrame(() => {
    membersDue = false
    showHeader()
    timeline.updatePeople()
    if (openPanel === "members") people.show(store.current)
    showRooms()
  })
}

function letIn() {
  document.getElementById("app").replaceChildren(
    el("main", { class: "empty" }, el("h1", { text: t("letIn") }), el("p", { text: t("letInHow") })))
}

async function run() {
  if (!await logIn()) return letIn()
  begin()
  showStatus()
  for (;;) {
    try {
      await store.start(letIn)
      break
    } catch (error) {
      if (error.status === 401 || error.status === 403) return letIn()
      banner.textContent = t("nodeAway")
      banner.hidden = false
      await new Promise((resolve) => setTimeout(resolve, 1_000))
    }
  }
  showHeader()
  downloads.look()
  composer.focus()
  // The next visitor of this address, in another tab, brings a token again.
  addEventListener("hashchange", async () => { if (await logIn()) location.reload() })
}

run()
