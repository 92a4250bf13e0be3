// Whether somebody is who they say, and keeping somebody away.
import { call } from "/api.js"
import { cleanName, el, fingerprint, openDialog } from "/dom.js"
import { t } from "/texts.js"
import { store } from "/store.js"

/** Digits that both read aloud, in groups of five. */
const grouped = (code) => String(code).replaceAll(" ", "").match(/.{1,5}/g)?.join(" ") ?? ""

export async function openVerify(room) {
  const problem = el("p", { class: "problem", role: "alert" })
  const state = el("p", { role: "status" })
  const code = el("p", { class: "code" })
  const actions = el("p", { class: "actions" })
  const name = cleanName(room.title)
  openDialog({ text: t("whoIs", name), close: t("close") }, "small",
    el("p", { text: t("compare", name) }), code, state, problem, actions,
    el("p", { class: "quiet" },
      `${t("you")}: ${fingerprint(store.me.peer_id)} · ${name}: ${fingerprint(room.id)}`))
  const act = async (method, parts, body) => {
    problem.textContent = ""
    try {
      await call(method, ["peers", room.id, ...parts], { body })
      await store.refreshPeople()
      await show()
    } catch (error) {
      problem.textContent = error.message
    }
  }
  const button = (name, ...job) => el("button", { type: "button", text: t(name), onclick: () => act(...job) })
  const show = async () => {
    try {
      const found = await call("GET", ["peers", room.id, "verification"])
      const isBlocked = store.person(room.id)?.recognition?.blocked === true
      code.textContent = grouped(found.code)
      state.textContent = t(isBlocked ? "blocked" : found.verified ? "verifiedMeans" : "notVerified")
      actions.replaceChildren(
        found.verified ? button("unverify", "DELETE", ["verification"]) : button("sameCode", "POST", ["verification"]),
        isBlocked ? button("unblock", "PUT", ["block"], { blocked: false })
          : button("block", "PUT", ["block"], { blocked: true }))
    } catch (error) {
      problem.textContent = error.message
    }
  }
  await show()
}
