// Making elements. Texts become text nodes, never HTML.
import { icon } from "/icons.js"

/** An element: properties that begin with "on" are listeners, "class" and attributes as written, null ones left out. */
export function el(tag, properties, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value)
    else if (name === "text") element.textContent = value
    else element.setAttribute(name, value === true ? "" : value)
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false))
  return element
}

const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]/g
const TEXT_CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\ufff9-\ufffb]/g

/** A name as somebody else chose it: what would hide or reorder text becomes visible. */
export function cleanName(name) {
  const clean = String(name ?? "").replace(CONTROLS, "\ufffd")
  return clean.length > 200 ? clean.slice(0, 200) + "…" : clean
}

export function cleanText(text) {
  return String(text ?? "").replace(TEXT_CONTROLS, "\ufffd")
}

/** A name that cannot move the text around it, whatever direction it is written in. */
export function nameOf(text, className) {
  return el("bdi", { class: className, dir: "auto", text: cleanName(text) })
}

/** Beside a name: whether it was verified, and what about it should make one look twice. */
export function recognitionMark(recognition, t) {
  if (recognition?.poses_as) return el("span", { class: "mark danger", title: t("posesAs"), text: t("posesAsShort") })
  if (recognition?.blocked) return el("span", { class: "mark", text: t("blocked") })
  const word = recognition?.organiser_name
  if (word) {
    const role = recognition.organiser_role ? ` (${cleanName(recognition.organiser_role)})` : ""
    return el("span", { class: "mark good", title: t("organiserMeans") }, "✓ ",
      el("bdi", { text: cleanName(word) + role }))
  }
  if (recognition?.token && recognition.token !== "valid") {
    return el("span", { class: "mark warning", title: t("noTokenMeans"), text: t("noToken") })
  }
  if (recognition?.verified) return el("span", { class: "mark good", title: t("verifiedMeans"), text: t("verified") })
  if (recognition?.looks_like?.length > 0) {
    return el("span", { class: "mark warning", title: t("looksLikeMeans"), text: t("looksLike") })
  }
  return null
}

/** The first characters of a peer's ID as people compare them: two groups of four, as everywhere else. */
export function fingerprint(peer) {
  const text = String(peer ?? "").slice(0, 8)
  return text.slice(0, 4) + "-" + text.slice(4)
}

const LINK = /https?:\/\/[^\s<>"\u0000-\u001f]+/giu

/** A message's text with links: only http and https, and only what is written is where they lead. */
export function textWithLinks(text) {
  const nodes = []
  let last = 0
  for (const match of text.matchAll(LINK)) {
    let address = match[0].replace(/[.,;:!?'"»”’…]+$/u, "")
    if (address.endsWith(")") && !address.includes("(")) address = address.slice(0, -1)
    let url
    try { url = new URL(address) } catch { continue }
    if (url.username || url.password) continue
    nodes.push(text.slice(last, match.index))
    nodes.push(el("a", { href: url.href, target: "_blank", rel: "noopener noreferrer", text: address }))
    last = match.index + address.length
  }
  nodes.push(text.slice(last))
  return nodes
}

/**
 * Shows items as the rows of a list. A row stays the same element while its key and what it shows do, so that a press
 * of a button is not lost to a change elsewhere.
 */
export function showRows(list, items, keyOf, shownOf, make) {
  const known = list.rowsByKey ?? new Map()
  const rows = new Map()
  for (const item of items) {
    const key = keyOf(item)
    const shown = JSON.stringify(shownOf(item))
    const before = known.get(key)
    if (before?.shown === shown) {
      rows.set(key, before)
      continue
    }
    const row = { shown, element: make(item) }
    if (before?.element.contains(document.activeElement)) row.wantsFocus = true
    rows.set(key, row)
  }
  let at = list.firstElementChild
  const wanted = new Set([...rows.values()].map((row) => row.element))
  while (at && !wanted.has(at)) {
    const next = at.nextElementSibling
    at.remove()
    at = next
  }
  for (const { element } of rows.values()) {
    if (element === at) {
      at = at.nextElementSibling
    } else {
      list.insertBefore(element, at)
    }
    while (at && !wanted.has(at)) {
      const next = at.nextElementSibling
      at.remove()
      at = next
    }
  }
  list.rowsByKey = rows
  for (const row of rows.values()) {
    if (row.wantsFocus) row.element.querySelector("button")?.focus()
    row.wantsFocus = false
  }
}

/** Moves the keyboard between buttons of a list with the arrow keys. */
export function arrowKeys(list) {
  list.addEventListener("keydown", (event) => {
    if (!["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key)) return
    const items = [...list.querySelectorAll("button, a")]
    const at = items.indexOf(document.activeElement)
    if (at < 0) return
    event.preventDefault()
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key]
    items[Math.max(0, Math.min(items.length - 1, to))].focus()
  })
}

/** A dialog over the page; resolves when it is closed. The keyboard goes back to where it was. */
export function openDialog(title, className, ...children) {
  const close = el("button", { type: "button", class: "icon close", "aria-label": title.close }, icon("close"))
  const heading = el("h2", { id: "dialog-title", tabindex: "-1" }, title.text)
  const dialog = el("dialog", { class: className, "aria-labelledby": "dialog-title" },
    el("header", {}, heading, close), ...children)
  const before = document.activeElement
  close.addEventListener("click", () => dialog.close())
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close() })
  dialog.addEventListener("close", () => {
    dialog.remove()
    if (before?.isConnected) before.focus()
  })
  document.body.append(dialog)
  dialog.showModal()
  return dialog
}
