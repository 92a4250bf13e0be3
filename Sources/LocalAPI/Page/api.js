// Calls to the node. Everything goes to where the page came from; the cookie goes along by itself.
import { connect } from "/stream.js"

const KEY = "parley.base"
let base = null
try { base = localStorage.getItem(KEY) } catch { base = null }

/** What the node refuses, with its stable code. */
export class Refusal extends Error {
  constructor(status, code, detail) {
    super(detail)
    this.status = status
    this.code = code
  }
}

/** Lets this browser in with the token behind the #, which leaves the address bar at once. */
export async function logIn() {
  const token = location.hash.slice(1)
  if (/^[0-9a-f]{64}$/.test(token)) {
    history.replaceState(null, "", "/")
    const answer = await fetch("/session", { method: "POST", body: JSON.stringify({ token }) })
    if (answer.ok) {
      base = (await answer.json()).base
      try { localStorage.setItem(KEY, base) } catch { /* private windows may refuse: then until the page is left */ }
    }
  }
  return base !== null && /^\/[0-9a-f]{32}$/.test(base)
}

/** The parts of an address become one, each encoded. */
export function address(parts, query) {
  const path = parts.map((part) => encodeURIComponent(part).replaceAll(".", "%2E")).join("/")
  const entries = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null)
  const search = entries.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")
  return `${base}/v1/${path}${search ? "?" + search : ""}`
}

export async function call(method, parts, { query, body, signal } = {}) {
  const answer = await fetch(address(parts, query), {
    method, signal, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store",
  })
  return read(answer.status, await answer.text())
}

function read(status, text) {
  let json = null
  try { json = text ? JSON.parse(text) : null } catch { json = null }
  if (status >= 200 && status < 300) return json
  throw new Refusal(status, json?.code ?? "unknown", json?.detail ?? String(status))
}

/** Sends a file as it is; `progress` is told of bytes sent. Aborts with the signal. */
export function upload(parts, query, file, progress, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open("POST", address(parts, query))
    request.upload.addEventListener("progress", (event) => progress(event.loaded))
    request.addEventListener("load", () => {
      try { resolve(read(request.status, request.responseText)) } catch (error) { reject(error) }
    })
    request.addEventListener("error", () => reject(new Refusal(0, "unreachable", "")))
    request.addEventListener("abort", () => reject(new Refusal(0, "cancelled", "")))
    signal.addEventListener("abort", () => request.abort())
    request.send(file)
  })
}

/** The bytes of a picture; waits its turn when too many are read at once. */
export async function mediaBytes(id, byteCountMax, signal) {
  for (let attempt = 0; ; attempt++) {
    const answer = await fetch(address(["media", id, "bytes"]), { signal, cache: "no-store" })
    if (answer.ok) {
      if (Number(answer.headers.get("Content-Length") ?? 0) > byteCountMax) throw new Refusal(413, "too_large", "")
      return new Uint8Array(await answer.arrayBuffer())
    }
    try { read(answer.status, await answer.text()) } catch (error) {
      if (error.code !== "queue_full" || attempt >= 20) throw error
    }
    await pause(500)
  }
}

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/**
 * Events after a cursor, over restarts of the node: `onEvent(type, data)`, `onState(isOpen)`; `onLost` when the node's
 * store is another one than before, `onRefused` when it lets this browser in no more. Every message comes once.
 */
export class Events {
  #port = null

  constructor(listeners) {
    Object.assign(this, listeners)
    addEventListener("pagehide", () => this.stop())
    addEventListener("pageshow", (event) => { if (event.persisted) location.reload() })
  }

  start(cursor) {
    if (!this.#port) {
      this.#port = connect()
      this.#port.onmessage = ({ data }) => this.#take(data)
    }
    this.#port.postMessage({ base, start: cursor })
  }

  stop() { this.#port?.postMessage({ stop: true }) }

  #take(news) {
    if (news.type) return this.onEvent(news.type, JSON.parse(news.data))
    if (news.lost) return this.onLost()
    if (news.refused) return this.onRefused()
    this.onState(news.state)
  }
}
