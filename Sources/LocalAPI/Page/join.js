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
  const choice = (value, isOn) => el("input", { type: "radio", name: "secret", value, id: "join-" + value,
    checked: isOn, "aria-describedby": `join-${value}-means`, onchange: () => follow() })
  const open = choice("open", true)
  const secret = choice("secret", false)
  const passphraseRow = el("p", {}, el("label", { for: "join-passphrase", text: t("passphrase") }), passphrase)
  const submit = el("button", { type: "submit", class: "primary", text: t("join") })
  const follow = () => {
    passphraseRow.hidden = !secret.checked
    passphrase.required = secret.checked
  }
  const run = async (channel, word) => {
    problem.textContent = ""
    submit.disabled = true
    submit.textContent = t("joining")
    try {
      await store.join(channel, word)
      dialog.addEventListener("close", onJoined)
      dialog.close()
    } catch (error) {
      problem.textContent = error.message
    } finally {
      submit.disabled = false
      submit.textContent = t("join")
    }
  }
  const form = el("form", {
    class: "join",
    onsubmit: (event) => {
      event.preventDefault()
      run(name.value.trim(), secret.checked ? passphrase.value : null)
    },
  },
  el("p", {}, el("label", { for: "join-name", text: t("joinName") }), name),
  el("div", { role: "radiogroup", "aria-label": t("joinTitle"), class: "choices" },
    el("div", {}, open, el("label", { for: "join-open", text: t("joinOpen") }),
      el("p", { id: "join-open-means", class: "quiet", text: t("joinOpenMeans") })),
    el("div", {}, secret, el("label", { for: "join-secret", text: t("joinSecret") }),
      el("p", { id: "join-secret-means", class: "quiet", text: t("joinSecretMeans") }))),
  passphraseRow, problem, el("p", { class: "actions" }, submit),
  el("p", { class: "quiet" }, t("joinAs", cleanName(store.me.display_name)), " ", t("joinAsHow")))

  const joined = new Set([...store.rooms.values()].map((room) => room.key))
  const earlier = memory.get("earlier", []).filter((item) => !joined.has("c:" + item.name))
  const list = el("ul", { class: "plain-list earlier" }, earlier.map((item) => {
    const row = el("li", {},
      el("button", {
        type: "button",
        onclick: () => {
          if (item.isOpen) return run(item.name, null)
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
