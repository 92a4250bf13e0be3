// Where one writes, drops and pastes.
import { cleanName, el, nameOf } from "/dom.js"
import { edit } from "/deeds.js"
import { kindLine } from "/kinds.js"
import { icon } from "/icons.js"
import { t } from "/texts.js"
import { store } from "/store.js"
import { Uploads } from "/files.js"

// Bytes of UTF-8 that a message's text may have, so that it fits 30,000 bytes of JSON with its sender and identifiers.
const TEXT_MAX = 29_000

export class Composer {
  constructor() {
    this.uploads = new Uploads()
    this.problem = el("p", { class: "problem", role: "alert" })
    this.field = el("textarea", {
      id: "message", rows: "1", autocomplete: "off", onkeydown: (event) => this.#key(event),
      oninput: () => this.#input(), onpaste: (event) => this.#paste(event),
    })
    this.label = el("label", { for: "message", class: "hidden-text" })
    this.picker = el("input", { type: "file", multiple: true, class: "hidden-text", tabindex: "-1",
      "aria-hidden": "true", onchange: () => this.#picked() })
    this.attach = el("button", { type: "button", class: "icon", title: t("attach"), "aria-label": t("attach"),
      onclick: () => this.picker.click() }, icon("clip"))
    this.button = el("button", { type: "submit", class: "primary", text: t("send") })
    this.writers = el("p", { class: "writers quiet" })
    this.answered = el("div", { class: "answered", hidden: true })
    this.element = el("form", { class: "composer", onsubmit: (event) => this.#submit(event) },
      this.writers, this.uploads.element, this.problem, this.answered,
      el("div", { class: "composer-row" }, this.attach, this.picker, this.label, this.field, this.button))
    this.element.hidden = true
  }

  show(room) {
    if (this.room) this.room.draft = this.field.value
    this.room = room
    this.element.hidden = !room
    this.problem.textContent = ""
    if (!room) return
    this.field.value = room.draft
    this.label.textContent = t("write", room.title)
    this.field.placeholder = t("write", room.title)
    this.attach.hidden = room.kind !== "c"
    this.#showAnswered()
    this.showWriters()
    this.#fit()
  }

  /** What is written next stands in the place of this message's text. */
  edit(room, message) {
    if (room !== this.room) return
    this.#endEdit()
    room.answered = null
    room.edited = message
    this.field.value = message.body
    this.#showAnswered()
    this.#fit()
    this.focus()
  }

  #endEdit() {
    if (!this.room?.edited) return
    this.room.edited = null
    this.field.value = ""
    this.#fit()
  }

  /** What is written next answers this message. */
  answer(room, message) {
    if (room !== this.room) return
    this.#endEdit()
    room.answered = message
    this.#showAnswered()
    this.focus()
  }

  #showAnswered() {
    const isEdit = Boolean(this.room?.edited)
    const message = this.room?.edited ?? this.room?.answered ?? null
    this.answered.hidden = message === null
    if (!message) return this.answered.replaceChildren()
    this.answered.replaceChildren(
      el("span", { class: "quoted" }, t(isEdit ? "editing" : "answering") + " ",
        nameOf(message.sender.display_name, "name"), ": ",
        el("bdi", { text: kindLine(message).slice(0, 120) })),
      el("button", { type: "button", class: "icon small", "aria-label": t(isEdit ? "editNot" : "answerNot"),
        title: t(isEdit ? "editNot" : "answerNot"), onclick: () => {
          this.room.answered = null
          this.#endEdit()
          this.#showAnswered()
          this.focus()
        } }, icon("close")))
  }

  focus() { this.field.focus() }

  /** Files from wherever: dropped, pasted or picked. */
  share(files) {
    const room = this.room
    if (!room || files.length === 0) return
    if (room.kind !== "c") {
      this.problem.textContent = t("noFilesHere")
      return
    }
    this.problem.textContent = ""
    this.uploads.add(room, files)
  }

  /** What a drop holds, without folders. */
  drop(transfer) {
    const files = []
    let hasFolder = false
    for (const item of transfer.items) {
      if (item.kind !== "file") continue
      if (item.webkitGetAsEntry?.()?.isDirectory) hasFolder = true
      else files.push(item.getAsFile())
    }
    this.share(files.filter(Boolean))
    if (hasFolder) this.problem.textContent = t("noFolders")
  }

  #picked() {
    this.share([...this.picker.files])
    this.picker.value = ""
  }

  #paste(event) {
    const files = [...event.clipboardData.files]
    if (files.length === 0) return
    event.preventDefault()
    this.share(files.map((file) => {
      if (file.name && file.name !== "image.png") return file
      const time = new Date().toISOString().slice(0, 19).replaceAll(":", "-")
      return new File([file], `${t("pasted")} ${time}.png`, { type: file.type })
    }))
  }

  #key(event) {
    // While an input method composes, Enter belongs to it.
    if (event.key === "Escape" && (this.room?.answered || this.room?.edited)) {
      event.preventDefault()
      this.room.answered = null
      this.#endEdit()
      return this.#showAnswered()
    }
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
    event.preventDefault()
    this.element.requestSubmit()
  }

  #submit(event) {
    event.preventDefault()
    const text = this.field.value
    if (!this.room || text.trim() === "") return
    if (new TextEncoder().encode(JSON.stringify(text)).length > TEXT_MAX) {
      this.problem.textContent = t("tooLong")
      return
    }
    this.problem.textContent = ""
    if (this.room.edited) return this.#change(this.room.edited, text)
    this.field.value = ""
    this.#fit()
    store.send(this.room, text)
    this.#showAnswered()
  }

  async #change(message, text) {
    try {
      await edit(message, text)
    } catch (error) {
      this.problem.textContent = error.message
      return
    }
    this.#endEdit()
    this.#showAnswered()
  }

  #input() {
    this.#fit()
    if (this.room && this.field.value !== "") store.writing(this.room)
  }

  /** Who else writes. */
  showWriters() {
    const writers = this.room?.kind === "c" ? [...this.room.writers.keys()] : []
    const names = writers.slice(0, 3).map((peer) => cleanName(this.room.members.get(peer)?.display_name ?? "…"))
    this.writers.textContent = names.length > 0 ? t("writing", names.join(", "), writers.length) : ""
  }

  #fit() {
    this.field.style.height = "auto"
    this.field.style.height = Math.min(this.field.scrollHeight + 2, 200) + "px"
  }
}
