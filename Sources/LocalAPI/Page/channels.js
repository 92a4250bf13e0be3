// Channels with an owner: inviting people, announcing, closing.
import { call } from "/api.js"
import { cleanName, cleanText, el, openDialog } from "/dom.js"
import { t } from "/texts.js"
import { store } from "/store.js"

const isAdmin = (room) => ["owner", "admin"].includes(store.ownRole(room))

/** Buttons for whoever has a say in the channel. */
export function channelActions(room) {
  if (!isAdmin(room)) return []
  const button = (name, open) => el("button", { type: "button", text: t(name), onclick: () => open(room) })
  return [button("invite", openInvite), button("announce", openAnnounce)]
}

function openInvite(room) {
  const problem = el("p", { class: "problem", role: "alert" })
  const result = el("div", { role: "status" })
  const select = (id, options) => el("select", { id }, options.map(([value, text]) => el("option", { value, text })))
  const role = select("invite-role", [["member", t("role_member")], ["admin", t("role_admin")]])
  const expires = select("invite-expires", [["86400", t("forDay")], ["604800", t("forWeek")], ["", t("forEver")]])
  const uses = select("invite-uses", [["", t("anyUses")], ["1", t("oneUse")]])
  const label = (field, name) => el("p", {}, el("label", { for: field.id, text: t(name) + " " }), field)
  const make = async (event) => {
    event.preventDefault()
    problem.textContent = ""
    const body = { role: role.value }
    if (expires.value) body.expires_after = Number(expires.value)
    if (uses.value) body.uses = Number(uses.value)
    try {
      const made = await call("POST", ["channels", room.id, "invitations"], { body })
      result.replaceChildren(...invitation(made))
      result.querySelector("input").select()
    } catch (error) {
      problem.textContent = error.message
    }
  }
  openDialog({ text: t("inviteTo", cleanName(room.title)), close: t("close") }, "small",
    el("p", { class: "quiet", text: t("inviteMeans") }),
    el("form", { class: "join", onsubmit: make }, label(role, "inviteRole"), label(expires, "inviteExpires"),
      label(uses, "inviteUses"), el("p", { class: "actions" },
        el("button", { type: "submit", class: "primary", text: t("makeLink") }))),
    problem, result)
}

function invitation(made) {
  const link = el("input", { id: "invite-link", readonly: true, value: made.link, spellcheck: "false" })
  const copied = el("span", { role: "status", class: "quiet" })
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(made.link)
    } catch {
      link.select()
      document.execCommand("copy")
    }
    copied.textContent = t("copied")
  }
  const parts = [
    el("p", { class: "join" }, el("label", { for: "invite-link", text: t("inviteLink") }), link),
    el("p", { class: "actions" }, el("button", { type: "button", text: t("copy"), onclick: copy }), copied)]
  if (made.svg) {
    const url = URL.createObjectURL(new Blob([made.svg], { type: "image/svg+xml" }))
    parts.push(el("p", { class: "code-picture" },
      el("img", { src: url, alt: t("inviteCode"), onload: () => URL.revokeObjectURL(url) })))
  }
  return parts
}

function openAnnounce(room) {
  const problem = el("p", { class: "problem", role: "alert" })
  const field = el("textarea", { id: "announce-text", rows: "4" })
  field.value = room.announcement?.body ?? ""
  const dialog = openDialog({ text: t("announce"), close: t("close") }, "small",
    el("form", {
      class: "join", onsubmit: async (event) => {
        event.preventDefault()
        problem.textContent = ""
        try {
          await call("PUT", ["channels", room.id, "announcement"], { body: { body: field.value } })
          dialog.close()
        } catch (error) {
          problem.textContent = error.message
        }
      },
    }, el("p", {}, el("label", { for: "announce-text", text: t("announceText") }), field), problem,
    el("p", { class: "actions" }, el("button", { type: "submit", class: "primary", text: t("announce") }))))
}

/** What is announced in the channel, above the conversation. */
export class Announcement {
  constructor() {
    this.text = el("p", { class: "text", dir: "auto" })
    this.element = el("aside", { class: "announcement", "aria-label": t("announcement"), hidden: true },
      el("strong", { text: t("announcement") + ": " }), this.text)
  }

  show(room) {
    const body = room?.announcement?.body ?? null
    this.element.hidden = body === null
    this.text.textContent = cleanText(body ?? "")
  }
}
