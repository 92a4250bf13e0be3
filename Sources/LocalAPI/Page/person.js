// One member: who it is, what they may do here, and what whoever has a say can change of it.
import { call } from "/api.js"
import { cleanName, el, openDialog, recognitionMark } from "/dom.js"
import { fullTimeOf, t } from "/texts.js"
import { store } from "/store.js"
import { openVerify } from "/verify.js"

/** In a word; null for a plain member. */
export function roleMark(member) {
  const words = []
  if (member.role && member.role !== "member") words.push(t("role_" + member.role))
  if (member.muted) words.push(t("muted"))
  return words.length > 0 ? el("span", { class: "mark", text: words.join(", ") }) : null
}

export function openPerson(room, member, onOpen) {
  const id = member.peer_id
  const problem = el("p", { class: "problem", role: "alert" })
  const body = el("div", {})
  const name = cleanName(member.display_name)
  const dialog = openDialog({ text: name, close: t("close") }, "small", body, problem)
  const act = (name, method, parts, json) => el("button", {
    type: "button", text: t(name), onclick: async () => {
      problem.textContent = ""
      try {
        await call(method, ["channels", room.id, "members", id, ...parts], { body: json })
        await store.loadMembers(room)
        show()
      } catch (error) {
        problem.textContent = error.message
      }
    },
  })
  const role = (name, role, more) => act(name, "PUT", ["role"], { role, ...more })
  const show = () => {
    const now = room.members.get(id) ?? member
    const pair = (name, ...value) => [el("dt", { text: name }), el("dd", {}, ...value)]
    const word = now.recognition?.organiser_name
    body.replaceChildren(
      el("dl", {}, ...pair(t("yourID").replace(/^.*\s/, ""), el("span", { class: "id", text: id })),
        ...(now.role ? pair(t("role"), t("role_" + now.role), now.muted ? ", " + mutedText(now) : "") : []),
        ...(word ? pair(t("organiserSays"), el("bdi", { text: cleanName(word) }),
          now.recognition.organiser_role ? ` (${cleanName(now.recognition.organiser_role)})` : "") : []),
        ...(recognitionMark(now.recognition, t) ? pair(t("state"), recognitionMark(now.recognition, t)) : [])),
      el("p", { class: "actions" },
        el("button", { type: "button", class: "primary", text: t("talkTo", name), onclick: () => {
          dialog.close()
          onOpen(store.peer(id, now.display_name))
        } }),
        el("button", { type: "button", text: t("verify"), onclick: () => {
          dialog.close()
          openVerify(store.peer(id, now.display_name))
        } })),
      ...ruling(room, now, act, role))
  }
  show()
}

const mutedText = (member) =>
  member.muted_until ? t("mutedUntil", fullTimeOf(new Date(member.muted_until))) : t("muted")

/** What our own role lets us do to theirs. */
function ruling(room, member, act, role) {
  const own = store.ownRole(room)
  const theirs = member.role
  if (!["owner", "admin"].includes(own) || !theirs || theirs === "owner" || theirs === "admin" && own !== "owner") {
    return []
  }
  const buttons = []
  if (member.raise_hand) buttons.push(act("lowerTheirs", "DELETE", ["hand"]))
  if (theirs === "removed" || theirs === "banned") {
    buttons.push(act("letInAgain", "DELETE", ["ban"]))
  } else {
    if (member.muted) buttons.push(act("unmute", "DELETE", ["mute"]))
    else buttons.push(role("mute10", "muted", { seconds: 600 }), role("mute", "muted"))
    if (own === "owner") {
      buttons.push(theirs === "admin" ? role("makeMember", "member") : role("makeAdmin", "admin"))
    }
    buttons.push(role("remove", "removed"), role("ban", "banned"))
  }
  return [el("h3", { text: t("inThisChannel", cleanName(room.title)) }), el("p", { class: "actions" }, ...buttons)]
}
