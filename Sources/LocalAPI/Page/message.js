// One message as a row of the conversation.
import { cleanName, cleanText, el, fingerprint, nameOf, openDialog, recognitionMark, textWithLinks } from "/dom.js"
import { icon } from "/icons.js"
import { bytes, dayOf, fullTimeOf, t, timeOf } from "/texts.js"
import { store } from "/store.js"
import { pictureButton, playButton } from "/pictures.js"
import { fileActions } from "/files.js"
import { openDeeds, reactions, recalledText, stateMarks } from "/deeds.js"
import { kindBody, kindLine } from "/kinds.js"

// Characters of a text that are shown at once.
const SHOWN = 3_000
// Messages of one person within this time stand under one name; in milliseconds.
const TOGETHER = 300_000

const dateOf = (message) => {
  const date = new Date(message.timestamp)
  return Number.isNaN(date.getTime()) ? new Date(0) : date
}

const sameDay = (a, b) => a.toDateString() === b.toDateString()

export function messageRow(room, message, before) {
  const sender = message.sender.sender_id
  const isOwn = sender === store.me.peer_id
  const date = dateOf(message)
  const earlier = before ? dateOf(before) : null
  const isNewDay = !earlier || !sameDay(earlier, date)
  const isMarked = message === room.marker
  const isTogether = !isNewDay && !isMarked && before.sender.sender_id === sender && date - earlier < TOGETHER
  const status = el("span", { class: "status" })
  const row = el("li", { class: "row" + (isOwn ? " own" : "") + (isTogether ? " together" : "") },
    isNewDay && el("p", { class: "day", text: dayOf(date) }),
    isMarked && el("p", { class: "marker" }, el("span", { text: t("newMessages") })),
    el("div", { class: "bubble" },
      !isTogether && !isOwn && el("p", { class: "sender" }, nameOf(message.sender.display_name, "name"), " ",
        el("span", { class: "fingerprint", text: fingerprint(sender) }), " ",
        recognitionMark(message.recognition, t)),
      ...(message.state?.recalled ? [el("p", { class: "text unknown", text: recalledText(room, message) })] : [
        ...(message.reply_to ? [quote(room, message.reply_to)] : []), ...body(room, message),
        reactions(room, message)].filter(Boolean)),
      el("p", { class: "meta" }, ...(message.state?.recalled ? [] : [replyButton(room, message),
        room.kind === "c" && store.hasDeeds && moreButton(room, message), ...stateMarks(room, message)]),
        el("time", { datetime: date.toISOString(), title: fullTimeOf(date), text: timeOf(date) }), " ", status)))
  row.status = status
  updateRow(row, room, message)
  return row
}

/** What may change of a row later: who has it. */
export function updateRow(row, room, message) {
  if (message.sender.sender_id !== store.me.peer_id) return
  const has = message.delivered_to
  let text
  if (room.kind === "p") {
    text = has.length > 0 ? t("deliveredAll", 1) : message.isExpired ? t("expired") : t("waitingForPeer")
  } else if (has.length === 0) {
    text = t("sent")
  } else {
    const all = Math.max(has.length, others(room, message).length)
    text = has.length >= all ? t("deliveredAll", all) : t("delivered", has.length, all)
  }
  if (row.status.textContent === text) return
  row.status.replaceChildren(room.kind === "p" || has.length === 0 ? text
    : el("button", { type: "button", class: "plain", text, onclick: () => showHolders(room, message) }))
}

/** Whom it should reach: who has it, and who else is here. */
function others(room, message) {
  const ids = new Set(message.delivered_to)
  for (const member of room.members.values()) if (member.status === "online" && !member.self) ids.add(member.peer_id)
  return [...ids]
}

function showHolders(room, message) {
  const rows = others(room, message).map((id) => {
    const member = room.members.get(id)
    const hasRead = message.state?.read_by?.some((deed) => deed.operator_id === id)
    const has = message.delivered_to.includes(id)
    return el("li", {}, nameOf(member?.display_name ?? "", "name"), " ",
      el("span", { class: "fingerprint", text: fingerprint(id) }), " — ",
      t(hasRead ? "hasRead" : has ? "has" : "hasNot"))
  })
  openDialog({ text: t("whoHas"), close: t("close") }, "small", el("ul", { class: "plain-list" }, rows))
}

function body(room, message) {
  if (message.remote_url) return kindBody(message)
  switch (message.type) {
    case "text": return [text(message.body)]
    case "photo": return [pictureButton(room, message), caption(message), ...fileActions(room, message)]
    case "video": return [
      message.thumbnail_media_id ? pictureButton(room, message) : null, caption(message, "film"),
      el("p", { class: "actions" }, playButton(message)),
      ...fileActions(room, message)].filter(Boolean)
    case "file": return [caption(message, "file"), ...fileActions(room, message)]
    default:
      return kindBody(message)
        ?? [el("p", { class: "text unknown", text: t("unknownKind", cleanName(message.type)) })]
  }
}

/** What a message answers, as far as it is here; leads to it. */
function quote(room, reference) {
  const answered = room.byKey.get(`${reference.sender_id} ${reference.message_id}`)
  if (!answered) return el("p", { class: "quote quiet", text: t("answeredAway") })
  return el("button", {
    type: "button", class: "quote", title: t("jumpTo"),
    onclick: () => store.tell("reveal", { room, message: answered }),
  }, nameOf(answered.sender.display_name, "name"),
  el("span", { class: "quoted", dir: "auto", text: kindLine(answered).slice(0, 160) }))
}

function replyButton(room, message) {
  const label = t("replyTo", cleanName(message.sender.display_name))
  return el("button", { type: "button", class: "icon small reply", title: label, "aria-label": label,
    onclick: () => store.tell("reply", { room, message }) }, icon("reply"))
}

function moreButton(room, message) {
  return el("button", { type: "button", class: "icon small reply more", title: t("messageActions"),
    "aria-label": t("messageActions"), onclick: () => openDeeds(room, message) }, icon("more"))
}

function text(value) {
  const whole = cleanText(value)
  if (whole.length <= SHOWN) return el("p", { class: "text", dir: "auto" }, textWithLinks(whole))
  const paragraph = el("p", { class: "text", dir: "auto" }, textWithLinks(whole.slice(0, SHOWN)), "…")
  const button = el("button", {
    type: "button", class: "plain", text: t("showAll"),
    onclick: () => {
      paragraph.replaceChildren(...textWithLinks(whole))
      button.remove()
    },
  })
  return el("div", {}, paragraph, button)
}

function caption(message, sign) {
  return el("p", { class: "caption" },
    sign && icon(sign),
    nameOf(message.file_name, "file-name"), " ",
    message.size !== undefined && message.size !== null && el("span", { class: "size", text: bytes(message.size) }))
}

/** What a screen reader is told, and a notification says. */
export function spoken(message) {
  const name = cleanName(message.sender.display_name)
  return t("says", name, message.state?.recalled ? t("recalled") : kindLine(message).slice(0, 300))
}

export function pendingRow(room, pending) {
  const isFailed = pending.state === "failed"
  const states = { sending: t("sending"), sent: t("sent"), failed: t("failed") }
  return el("li", { class: "row own pending" + (isFailed ? " failed" : "") },
    el("div", { class: "bubble" }, text(pending.text),
      el("p", { class: "meta" },
        el("time", { datetime: pending.at.toISOString(), text: timeOf(pending.at) }), " ",
        el("span", { class: "status", text: states[pending.state] })),
      isFailed && pending.error && el("p", { class: "problem",
        text: pending.error === "tooLong" ? t("tooLong") : pending.error }),
      isFailed && el("p", { class: "actions" },
        el("button", { type: "button", text: t("retry"), onclick: () => store.attempt(room, pending) }),
        el("button", { type: "button", text: t("discard"), onclick: () => store.discard(room, pending) }))))
}
