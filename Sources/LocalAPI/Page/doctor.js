// What parley doctor says: what works, what does not, what to try.
import { call } from "/api.js"
import { cleanText, el } from "/dom.js"
import { t } from "/texts.js"

const MARKS = { good: "good", notice: "warning", problem: "danger" }

/** A part of a dialog that fills itself; what the node says of itself is in its own language, English. */
export function doctorPart() {
  const list = el("ul", { class: "plain-list results findings" })
  const summary = el("p", { role: "status", text: t("loading") })
  const show = async () => {
    try {
      const found = await call("GET", ["doctor"])
      summary.textContent = t(found.well ? "allWell" : "notWell")
      list.replaceChildren(...found.interfaces.map(interfaceRow), ...found.findings.map(findingRow))
    } catch (error) {
      summary.textContent = error.code ? error.message : t("nodeAway")
    }
  }
  show()
  return el("section", { "aria-labelledby": "doctor-title" },
    el("h3", { id: "doctor-title", text: t("doctorTitle") }), summary, list,
    el("p", { class: "actions" }, el("button", { type: "button", text: t("lookAgain"), onclick: show })))
}

function interfaceRow(item) {
  return el("li", {}, el("p", { class: "quiet" }, el("bdi", { text: cleanText(item.name) }), " — ",
    t("doctorInterface", item.sent, item.came_back, item.heard)))
}

function findingRow(finding) {
  return el("li", { lang: "en", dir: "ltr" },
    el("p", {}, el("span", { class: "mark " + (MARKS[finding.level] ?? ""), text: t("level_" + finding.level) }), " ",
      cleanText(finding.text)),
    finding.advice && el("p", { class: "quiet", text: "→ " + cleanText(finding.advice) }))
}
