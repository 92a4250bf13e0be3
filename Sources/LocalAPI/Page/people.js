// Members of the channel: online first, raised hands in the order in which they went up.
import { arrowKeys, cleanName, el, nameOf, recognitionMark, showRows } from "/dom.js"
import { icon } from "/icons.js"
import { t } from "/texts.js"
import { store } from "/store.js"
import { channelActions } from "/channels.js"
import { openPerson, roleMark } from "/person.js"

// Names that are in the document at once in one section.
const SHOWN = 300

export class People {
  constructor(onOpen, onLeave) {
    this.onOpen = onOpen
    this.online = el("ul", { class: "people" })
    this.offline = el("ul", { class: "people" })
    this.onlineTitle = el("h3", {})
    this.offlineTitle = el("h3", {})
    this.more = el("p", { class: "quiet", text: "…" })
    this.body = el("div", {}, this.onlineTitle, this.online, this.offlineTitle, this.offline, this.more)
    this.leave = el("button", { type: "button", text: t("leave"), onclick: onLeave })
    this.foot = el("p", { class: "panel-foot actions" }, this.leave)
    this.element = el("section", { class: "panel-part", "aria-labelledby": "members-title" },
      el("h2", { id: "members-title", text: t("members") }), this.body, this.foot)
    arrowKeys(this.body)
  }

  show(room) {
    if (!room || room.kind !== "c") return
    const members = [...room.members.values()]
    const place = (member) => {
      const at = room.hands.indexOf(member.peer_id)
      return at < 0 ? Infinity : at
    }
    const order = (a, b) => {
      const [first, second] = [place(a), place(b)]
      return first === second ? a.display_name.localeCompare(b.display_name) : first - second
    }
    const online = members.filter((member) => member.status === "online").sort(order)
    const offline = members.filter((member) => member.status !== "online").sort(order)
    this.onlineTitle.textContent = t("online", online.length)
    this.offlineTitle.textContent = t("offline", offline.length)
    this.offlineTitle.hidden = offline.length === 0
    const shown = (member) => [member.display_name, member.status, place(member), member.recognition, room.key,
      member.role, member.muted, store.ownRole(room)]
    const foot = JSON.stringify([room.key, store.ownRole(room)])
    if (this.footShown !== foot) {
      this.footShown = foot
      this.foot.replaceChildren(...channelActions(room), this.leave)
    }
    const show = (list, items) =>
      showRows(list, items.slice(0, SHOWN), (member) => member.peer_id, shown, (member) => this.row(room, member))
    show(this.online, online)
    show(this.offline, offline)
    this.more.hidden = Math.max(online.length, offline.length) <= SHOWN
  }

  row(room, member) {
    const place = room.hands.indexOf(member.peer_id)
    const parts = [
      el("span", { class: "dot " + member.status, "aria-hidden": "true" }),
      nameOf(member.display_name, "name"), " ",
      el("span", { class: "fingerprint", text: member.fingerprint }),
      recognitionMark(member.recognition, t),
      roleMark(member),
      member.self && el("span", { class: "you", text: t("you") }),
      member.raise_hand && el("span", { class: "hand" }, icon("hand"), ` ${place + 1}`,
        el("span", { class: "hidden-text", text: " " + t("handUp") })),
    ]
    if (member.self) return el("li", { class: "person" }, ...parts)
    return el("li", { class: "person" },
      el("button", {
        type: "button", title: t("talkTo", cleanName(member.display_name)),
        onclick: () => this.onOpen(store.peer(member.peer_id, member.display_name)),
      }, ...parts),
      el("button", { type: "button", class: "icon", "aria-label": t("moreOf", cleanName(member.display_name)),
        title: t("moreOf", cleanName(member.display_name)), onclick: () => openPerson(room, member, this.onOpen) },
      icon("more")))
  }
}
