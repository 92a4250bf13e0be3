// Which language, and how numbers, sizes and times look in it.
import en from "/text-en.js"
import de from "/text-de.js"
import zh from "/text-zh.js"

const ALL = { en, de, zh }

function choose() {
  let wanted = null
  try { wanted = localStorage.getItem("parley.language") } catch { wanted = null }
  for (const tag of [wanted, ...navigator.languages]) {
    const name = String(tag ?? "").slice(0, 2).toLowerCase()
    if (name in ALL) return name
  }
  return "en"
}

export const language = choose()
const texts = ALL[language]
document.documentElement.lang = language

/** A text by its name; functions among them take what they speak of. */
export function t(name, ...values) {
  const text = texts[name] ?? en[name]
  return typeof text === "function" ? text(...values) : text
}

export const languages = Object.fromEntries(Object.entries(ALL).map(([name, table]) => [name, table.languageName]))

const UNITS = ["B", "kB", "MB", "GB", "TB"]

export function bytes(count) {
  if (count === null || count === undefined) return t("sizeUnknown")
  let unit = 0
  let value = count
  while (value >= 1000 && unit < UNITS.length - 1) { value /= 1000; unit += 1 }
  const digits = unit === 0 || value >= 100 ? 0 : 1
  return `${new Intl.NumberFormat(language, { maximumFractionDigits: digits }).format(value)} ${UNITS[unit]}`
}

export function duration(seconds) {
  const whole = Math.ceil(seconds)
  if (whole < 60) return t("seconds", whole)
  if (whole < 3600) return t("minutes", Math.ceil(whole / 60))
  return t("hours", Math.ceil(whole / 3600))
}

const TIME = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit" })
const FULL = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "medium" })
const DAY = new Intl.DateTimeFormat(language, { weekday: "long", day: "numeric", month: "long" })
const DAY_YEAR = new Intl.DateTimeFormat(language, { day: "numeric", month: "long", year: "numeric" })

export const timeOf = (date) => TIME.format(date)
export const fullTimeOf = (date) => FULL.format(date)

export function dayOf(date) {
  const now = new Date()
  const days = Math.round((startOf(now) - startOf(date)) / 86_400_000)
  if (days === 0) return t("today")
  if (days === 1) return t("yesterday")
  return (days > 1 && days < 300 ? DAY : DAY_YEAR).format(date)
}

const startOf = (date) => new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime()
