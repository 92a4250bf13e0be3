// Joining a channel.
import { cleanName, el, openDialog } from "/dom.js"
import { icon } from "/icons.js"
import { t } from "/texts.js"
import { memory, store } from "/store.js"

/** `onJoined` is called once the dialog is gone and the channel is open. */
export function openJoin(onJoined) {
  const problem = el("p", { class: "problem", role: "alert" })
  const name = el("input", { id: "join-name", name: "channel", required: true, autocomplete: "off", maxlength: "64",
    spellcheck: "false" })
  const passphrase = el("input", { id: "join-passphrase", type: "password", autocomplete: "off", maxlength: "1024" })
  const link = el("input", { id: "join-link-text", autocomplete: "off", maxlength: "4096", spellcheck: "false" })
  const choice = (value, isOn) => el("input", { type: "radio", name: "secret", value, id: "join-" + value,
    checked: isOn, "aria-describedby": `join-${value}-means`, onchange: () => follow() })
  const open = choice("open", true)
  const secret = choice("secret", false)
  const byLink = choice("link", false)
  const own = choice("own", false)
  const linkRow = el("p", {}, el("label", { for: "join-link-text", text: t("inviteLink") }), link)
  const passphraseRow = el("p", {}, el("label", { for: "join-passphrase", text: t("passphrase") }), passphrase)
  const submit = el("button", { type: "submit", class: "primary", text: t("join") })
  const follow = () => {
    passphraseRow.hidden = !secret.checked
    passphrase.required = secret.checked
    linkRow.hidden = !byLink.checked
    link.required = byLink.checked
    nameRow.hidden = byLink.checked
    name.required = !byLink.checked
    submit.textContent = t(own.checked ? "create" : "join")
  }
  const run = async (job) => {
    problem.textContent = ""
    submit.disabled = true
    submit.textContent = t("joining")
    try {
      await job()
      dialog.addEventListener("close", onJoined)
      dialog.close()
    } catch (error) {
      problem.textContent = error.message
    } finally {
      submit.disabled = false
      follow()
    }
  }
  const chosen = () => {
    const channel = name.value.trim()
    if (byLink.checked) return store.joinByLink(link.value.trim())
    if (own.checked) return store.create(channel)
    return store.join(channel, secret.checked ? passphrase.value : null)
  }
  const nameRow = el("p", {}, el("label", { for: "join-name", text: t("joinName") }), name)
  const option = (input, text) => el("div", {}, input, el("label", { for: input.id, text: t(text) }),
    el("p", { id: input.id + "-means", class: "quiet", text: t(text + "Means") }))
  const form = el("form", {
    class: "join",
    onsubmit: (event) => {
      event.preventDefault()
      run(chosen)
    },
  },
  nameRow,
  el("div", { role: "radiogroup", "aria-label": t("joinTitle"), class: "choices" }, option(open, "joinOpen"),
    option(secret, "joinSecret"), option(byLink, "joinLink"), option(own, "joinOwn")),
  passphraseRow, linkRow, problem, el("p", { class: "actions" }, submit),
  el("p", { class: "quiet" }, t("joinAs", cleanName(store.me.display_name)), " ", t("joinAsHow")))

  const joined = new Set([...store.rooms.values()].map((room) => room.key))
  const earlier = memory.get("earlier", []).filter((item) => !joined.has("c:" + item.name))
  const list = el("ul", { class: "plain-list earlier" }, earlier.map((item) => {
    const row = el("li", {},
      el("button", {
        type: "button",
        onclick: () => {
          if (item.isOpen) return run(() => store.join(item.name, null))
          name.value = item.name
          secret.checked = true
          follow()
          passphrase.focus()
        },
      }, el("bdi", { text: cleanName(item.name) }), " — ",
      t(item.isOpen ? "openChannel" : "closedChannel")),
      el("button", {
        type: "button", class: "icon", "aria-label": t("forget", cleanName(item.name)), onclick: () => {
          memory.set("earlier", memory.get("earlier", []).filter((other) => other.name !== item.name))
          row.remove()
        },
      }, icon("close")))
    return row
  }))
  const dialog = openDialog({ text: t("joinTitle"), close: t("close") }, "small", form,
    ...(earlier.length > 0 ? [el("h3", { text: t("earlier") }), list] : []))
  follow()
  name.focus()
}
