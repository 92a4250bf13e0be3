// What is done to a message that was said: reacting, changing, taking back, pinning.
import { call } from "/api.js"
import { cleanName, cleanText, el, nameOf, openDialog } from "/dom.js"
import { kindLine } from "/kinds.js"
import { dayOf, fullTimeOf, t, timeOf } from "/texts.js"
import { store } from "/store.js"

const SIGNS = ["👍", "❤️", "😂", "🎉", "😮", "✅", "❓", "👎"]

const address = (message, ...more) =>
  ["channels", message.channel, "messages", message.sender.sender_id, message.message_id, ...more]

const isOwn = (message) => message.sender.sender_id === store.me.peer_id
const nameIn = (room, peer) => cleanName(room.members.get(peer)?.display_name ?? peer.slice(0, 8))

async function change(method, message, parts, body) {
  store.changed(await call(method, address(message, ...parts), { body }))
}

const react = (message, emoji, on) => change("PUT", message, ["reaction"], { emoji, on })

/** Signs below a message; a press gives the same, or takes one's own off. */
export function reactions(room, message) {
  const given = message.state?.reactions ?? []
  if (given.length === 0) return null
  return el("p", { class: "reactions" }, given.map(({ emoji, peers }) => {
    const isMine = peers.includes(store.me.peer_id)
    const names = peers.map((peer) => nameIn(room, peer)).join(", ")
    const sign = cleanName(emoji)
    return el("button", {
      type: "button", class: "small", "aria-pressed": String(isMine), title: names,
      "aria-label": t("reactionOf", sign, names),
      onclick: () => react(message, emoji, !isMine).catch(() => null),
    }, el("bdi", { text: sign }), ` ${peers.length}`)
  }))
}

/** Beside the time: what was done to it. */
export function stateMarks(room, message) {
  const { edited, pinned } = message.state ?? {}
  const at = (deed) => `${nameIn(room, deed.operator_id)}, ${fullTimeOf(new Date(deed.operation_time))}`
  return [
    pinned && el("span", { class: "deed", title: at(pinned), text: t("pinned") + " " }),
    edited && el("span", { class: "deed", title: at(edited), text: t("edited") + " " })].filter(Boolean)
}

export const recalledText = (room, message) => t("recalledBy", nameIn(room, message.state.recalled.operator_id))

export function openDeeds(room, message) {
  const problem = el("p", { class: "problem", role: "alert" })
  const own = store.ownRole(room)
  const rules = ["owner", "admin"].includes(own)
  const act = (job) => async () => {
    problem.textContent = ""
    try {
      await job()
      dialog.close()
    } catch (error) {
      problem.textContent = error.message
    }
  }
  const button = (name, job) => el("button", { type: "button", text: t(name), onclick: act(job) })
  const isPinned = Boolean(message.state?.pinned)
  const buttons = [
    button("answer", () => store.tell("reply", { room, message })),
    isOwn(message) && message.type === "text" && button("edit", () => store.tell("edit", { room, message })),
    (rules || !own) && button(isPinned ? "unpin" : "pin", () => change("PUT", message, ["pin"], { on: !isPinned })),
    (isOwn(message) || rules) && button("recall", () => change("POST", message, ["recall"], {})),
    message.type === "text" && button("copy", () => navigator.clipboard.writeText(message.body))].filter(Boolean)
  const signs = SIGNS.map((emoji) => el("button", { type: "button", text: emoji, "aria-label": t("reactWith", emoji),
    onclick: act(() => react(message, emoji, true)) }))
  const dialog = openDialog({ text: t("messageActions"), close: t("close") }, "small",
    el("p", { class: "quoted quiet", dir: "auto", text: kindLine(message).slice(0, 200) }),
    el("p", { class: "actions" }, ...signs), el("p", { class: "actions" }, ...buttons), problem)
}

/** Changes what an own text says. */
export const edit = (message, body) => change("PUT", message, [], { body })

/** What stands over the channel. */
export async function openPins(room, onFound) {
  const list = el("ul", { class: "plain-list results" })
  const status = el("p", { class: "quiet", role: "status", text: t("loading") })
  const dialog = openDialog({ text: t("pinnedIn", cleanName(room.title)), close: t("close") }, "small", status, list)
  try {
    const pins = await call("GET", ["channels", room.id, "pins"])
    status.textContent = t("found", pins.length)
    list.replaceChildren(...pins.toReversed().map((message) => el("li", {}, el("button", {
      type: "button", title: t("jumpTo"), onclick: () => {
        dialog.close()
        onFound(message)
      },
    },
    el("span", { class: "quiet" }, nameOf(message.sender.display_name, "name"),
      ` · ${dayOf(new Date(message.timestamp))} ${timeOf(new Date(message.timestamp))}`),
    el("span", { class: "found-text", dir: "auto", text: cleanText(kindLine(message)).slice(0, 200) })))))
  } catch (error) {
    status.textContent = error.message
  }
}
