// Looking for messages.
import { call } from "/api.js"
import { cleanName, el, nameOf } from "/dom.js"
import { kindLine } from "/kinds.js"
import { dayOf, t, timeOf } from "/texts.js"
import { store } from "/store.js"

const LIMIT = 100

export class Search {
  constructor(onFound) {
    this.onFound = onFound
    this.field = el("input", { type: "search", id: "search", autocomplete: "off", maxlength: "300" })
    this.label = el("label", { for: "search" })
    this.everywhere = el("input", { type: "checkbox", id: "search-everywhere" })
    this.count = el("p", { class: "quiet", role: "status" })
    this.list = el("ul", { class: "plain-list results" })
    this.element = el("section", { class: "panel-part", "aria-labelledby": "search-title" },
      el("h2", { id: "search-title", text: t("search") }),
      el("form", {
        role: "search",
        onsubmit: (event) => {
          event.preventDefault()
          this.run()
        },
      }, el("p", {}, this.label, this.field),
      el("p", {}, this.everywhere, el("label", { for: "search-everywhere", text: t("searchEverywhere") })),
      el("p", { class: "actions" }, el("button", { type: "submit", text: t("search") }))),
      this.count, this.list)
  }

  show(room) {
    this.label.textContent = t("searchIn", room?.title ?? "")
    this.everywhere.checked = room?.kind !== "c"
    this.room = room
    this.list.replaceChildren()
    this.count.textContent = ""
  }

  focus() { this.field.focus() }

  async run() {
    const text = this.field.value.trim()
    if (text === "") return
    const channel = this.everywhere.checked ? undefined : this.room?.id
    let found
    try {
      found = await call("GET", ["search"], { query: { text, channel, limit: LIMIT } })
    } catch (error) {
      this.count.textContent = error.message
      return
    }
    this.count.textContent = t("found", found.length)
    this.list.replaceChildren(...found.map((message) => this.row(message)))
  }

  row(message) {
    const date = new Date(message.timestamp)
    const text = kindLine(message).slice(0, 200)
    return el("li", {}, el("button", {
      type: "button", title: t("jumpTo"),
      onclick: () => this.onFound(store.rooms.get("c:" + message.channel), message),
    },
    el("span", { class: "quiet" }, nameOf(message.sender.display_name, "name"),
      ` · ${this.everywhere.checked ? cleanName(message.channel) + " · " : ""}${dayOf(date)} ${timeOf(date)}`),
    el("span", { class: "found-text", dir: "auto", text })))
  }
}
