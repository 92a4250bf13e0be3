// How kinds of messages look beside texts, photos, videos and files: a kind, a function.
import { address, call } from "/api.js"
import { cleanName, cleanText, el, nameOf, openDialog } from "/dom.js"
import { icon } from "/icons.js"
import { duration, t } from "/texts.js"

/** What others have recorded; nothing is fetched before it is played. */
function voice(message) {
  const name = cleanName(message.file_name)
  const seconds = Number(message.duration)
  return [
    el("p", { class: "caption" }, icon("voice"), t("voiceOf"), " ",
      Number.isFinite(seconds) && el("span", { class: "size", text: duration(seconds) })),
    el("audio", { controls: true, preload: "none", "aria-label": `${t("voiceOf")} ${name}`,
      src: address(["media", message.media_id, "bytes"]) })]
}

/** Numbers and words; no map, which would have to be fetched from somewhere. */
function location(message) {
  const [latitude, longitude] = [Number(message.latitude), Number(message.longitude)]
  const words = [message.building_name, message.address].filter((text) => typeof text === "string" && text !== "")
  const number = (value) => value.toFixed(5)
  return [
    el("p", { class: "caption" }, icon("place"), t("place")),
    ...words.map((text) => el("p", { class: "text", dir: "auto", text: cleanText(text).slice(0, 1_000) })),
    el("p", { class: "text" }, el("a", { class: "geo", rel: "noreferrer",
      href: `geo:${number(latitude)},${number(longitude)}`, text: `${number(latitude)}, ${number(longitude)}` }))]
}

function custom(message) {
  const fields = Object.entries(message.custom_ext ?? {}).slice(0, 50)
  return [
    el("p", { class: "caption" }, icon("puzzle"), t("customOf", cleanName(message.event))),
    fields.length > 0 && el("dl", { class: "fields" }, fields.flatMap(([name, value]) =>
      [el("dt", { text: cleanName(name) }), el("dd", { dir: "auto", text: cleanText(value).slice(0, 1_000) })]))]
}

/** Messages that somebody put together: outside its summary, inside what was written, as they say. */
function combine(message) {
  return [
    el("p", { class: "caption" }, icon("stack"), el("bdi", { text: cleanName(message.title) })),
    el("p", { class: "text quiet", dir: "auto",
      text: cleanText(message.summary ?? message.compatible_text).slice(0, 1_000) }),
    el("p", { class: "actions" }, el("button", { type: "button", text: t("unpack"),
      onclick: () => openCombined(message) }))]
}

async function openCombined(message) {
  const status = el("p", { class: "quiet", role: "status", text: t("loading") })
  const list = el("ul", { class: "plain-list results" })
  openDialog({ text: cleanName(message.title), close: t("close") }, "small",
    el("p", { class: "quiet", text: t("unpackedMeans") }), status, list)
  try {
    const inside = await call("GET", ["media", message.media_id, "messages"])
    status.textContent = ""
    list.replaceChildren(...inside.map((item) => el("li", {},
      el("p", { class: "sender" }, nameOf(item.sender?.display_name ?? "", "name")),
      el("p", { class: "text", dir: "auto", text: kindLine(item).slice(0, 3_000) }))))
  } catch (error) {
    status.textContent = error.message
  }
}

/** A file on a server of an application's: named, and not fetched by itself. */
function remote(message) {
  let url = null
  try { url = new URL(message.remote_url) } catch { url = null }
  const isPlain = url && ["http:", "https:"].includes(url.protocol) && !url.username && !url.password
  return [
    el("p", { class: "caption" }, icon("file"), el("bdi", { text: cleanName(message.file_name || t("remote")) })),
    el("p", { class: "text" }, isPlain
      ? el("a", { href: url.href, target: "_blank", rel: "noopener noreferrer", text: cleanName(url.href) })
      : cleanName(message.remote_url))]
}

const KINDS = { voice, location, custom, combine }

/** Null for a kind that has no look of its own here. */
export const kindBody = (message) =>
  (message.remote_url ? remote : KINDS[message.type])?.(message).filter(Boolean) ?? null

/** As a line: for notifications, search and quotes. */
export function kindLine(message) {
  const file = cleanName(message.file_name)
  if (message.state?.recalled) return t("recalled")
  switch (message.type) {
    case "text": return cleanText(message.body)
    case "photo": return t("photoOf", file)
    case "video": return t("videoOf", file)
    case "file": return t("fileOf", file)
    case "voice": return t("voiceOf")
    case "location": return t("place")
    case "custom": return t("customOf", cleanName(message.event))
    case "combine": return cleanName(message.title)
    default: return t("unknownKind", cleanName(message.type))
  }
}
