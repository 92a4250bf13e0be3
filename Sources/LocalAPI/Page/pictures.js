// Photos: small ones in the conversation, large ones over the page.
import { address, mediaBytes, pause } from "/api.js"
import { cleanName, el, openDialog } from "/dom.js"
import { t } from "/texts.js"
import { saveLink } from "/files.js"

// Pictures that are read at once, kept, and taken at most, in bytes.
const AT_ONCE = 3
const KEPT = 200
const THUMBNAIL_MAX = 8_000_000
const LARGE_MAX = 60_000_000

const kept = new Map()
const waiting = []
let running = 0

// What begins like this is a picture that cannot hold a script; the announced type counts for nothing.
const TYPES = [
  ["image/jpeg", [0xff, 0xd8, 0xff]], ["image/png", [0x89, 0x50, 0x4e, 0x47]], ["image/gif", [0x47, 0x49, 0x46, 0x38]],
  ["image/webp", [0x52, 0x49, 0x46, 0x46]],
]

function typeOf(bytes) {
  for (const [type, start] of TYPES) if (start.every((byte, index) => bytes[index] === byte)) return type
  const brand = String.fromCharCode(...bytes.subarray(4, 12))
  return brand === "ftypavif" ? "image/avif" : null
}

/** An address of the picture within the page; null when nobody has it, or it is none. */
async function picture(id, byteCountMax) {
  if (kept.has(id)) {
    const known = kept.get(id)
    kept.delete(id)
    kept.set(id, known)
    return known
  }
  if (running >= AT_ONCE) await new Promise((resolve) => waiting.push(resolve))
  running += 1
  try {
    const bytes = await mediaBytes(id, byteCountMax)
    const type = typeOf(bytes)
    if (!type) return null
    const url = URL.createObjectURL(new Blob([bytes], { type }))
    kept.set(id, url)
    if (kept.size > KEPT) {
      const [oldest, address] = kept.entries().next().value
      kept.delete(oldest)
      URL.revokeObjectURL(address)
    }
    return url
  } catch {
    return null
  } finally {
    running -= 1
    waiting.shift()?.()
  }
}

/** Fills an image; when nobody has it now, again a little later, while it is in the document. */
async function fill(image, id, byteCountMax, onMissing) {
  for (let attempt = 1; attempt <= 5; attempt++) {
    const url = await picture(id, byteCountMax)
    if (url) {
      image.addEventListener("error", onMissing)
      image.src = url
      return
    }
    onMissing()
    await pause(2_000 * attempt)
    if (!image.isConnected) return
  }
}

/** The photo as a button that opens it large. Its place is kept free before it is there. */
export function pictureButton(room, message) {
  const name = cleanName(message.file_name)
  const image = el("img", { alt: "", draggable: "false", decoding: "async" })
  const label = message.type === "video" ? t("videoOf", name) : t("photoOf", name)
  const note = el("span", { class: "picture-note" })
  const button = el("button", {
    type: "button", class: "picture", "aria-label": label, onclick: () => openLarge(message, label),
  }, image, note)
  const [width, height] = sizeOf(message)
  image.width = width
  image.height = height
  const isSmall = (message.size ?? Infinity) <= THUMBNAIL_MAX
  const id = message.thumbnail_media_id ?? message.big_media_id ?? (isSmall ? message.media_id : null)
  const missing = () => { note.textContent = image.naturalWidth > 0 ? "" : t("pictureAway") }
  image.addEventListener("load", () => { note.textContent = "" })
  if (id) fill(image, id, THUMBNAIL_MAX, missing)
  return button
}

/** In CSS pixels; within 320 by 240, whatever the message claims. */
function sizeOf(message) {
  const width = Number(message.width) > 0 ? Number(message.width) : 240
  const height = Number(message.height) > 0 ? Number(message.height) : 180
  const scale = Math.min(320 / width, 240 / height, 1)
  return [Math.max(48, Math.round(width * scale)), Math.max(48, Math.round(height * scale))]
}

/** A film, fetched as it is watched. */
export function playButton(message) {
  const label = t("videoOf", cleanName(message.file_name))
  return el("button", { type: "button", text: t("play"), "aria-label": label, onclick: () => openFilm(message, label) })
}

async function openFilm(message, label) {
  const film = el("video", { controls: true, preload: "metadata", "aria-label": label,
    src: address(["media", message.media_id, "bytes"]) })
  const note = el("p", { class: "note", role: "status" })
  film.addEventListener("error", () => { note.textContent = t("filmAway") })
  // A browser goes on fetching for a film that nobody sees.
  openDialog({ text: cleanName(message.file_name), close: t("close") }, "large",
    el("div", { class: "large-frame" }, film), note, el("p", { class: "actions" }, saveLink(message)))
    .addEventListener("close", () => film.removeAttribute("src"))
  const poster = message.thumbnail_media_id && await picture(message.thumbnail_media_id, THUMBNAIL_MAX)
  if (poster) film.poster = poster
}

function openLarge(message, label) {
  if (message.type === "video") return openFilm(message, label)
  const image = el("img", { alt: label, decoding: "async" })
  const note = el("p", { class: "note", role: "status", text: t("loading") })
  image.addEventListener("load", () => { note.textContent = "" })
  const name = cleanName(message.file_name)
  openDialog({ text: name, close: t("close") }, "large", el("div", { class: "large-frame" }, image), note,
    el("p", { class: "actions" }, saveLink(message)))
  fill(image, message.big_media_id ?? message.media_id, LARGE_MAX, () => { note.textContent = t("pictureAway") })
}
