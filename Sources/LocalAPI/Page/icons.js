// Signs drawn here: not every machine has a font with them.
const NAMESPACE = "http://www.w3.org/2000/svg"

// Lines in a field of 24 by 24.
const PATHS = {
  hand: "M7 12V6.5a1.5 1.5 0 0 1 3 0V11V4.5a1.5 1.5 0 0 1 3 0V11V5.5a1.5 1.5 0 0 1 3 0V12V8.5a1.5 1.5 0 0 1 3 0V15a7 7"
    + " 0 0 1-7 7c-3 0-4.500-1.500-6-4L3.500 13.500a1.500 1.500 0 0 1 2.500-1.700L7 13",
  people: "M9 11a3.500 3.500 0 1 0 0-7a3.500 3.500 0 0 0 0 7M2.500 20c0-4 2.500-6 6.500-6s6.500 2 6.500 6M16 11a3 3 0 1 0-1"
    + "-5.900M17.500 14.200c2.500.500 4 2.400 4 5.800",
  folder: "M3 6.500a1.500 1.500 0 0 1 1.500-1.500h5l2 2.500h8a1.500 1.500 0 0 1 1.500 1.500v9a1.500 1.500 0 0 1-1.500 1.500h"
    + "-15a1.500 1.500 0 0 1-1.500-1.500z",
  search: "M10.500 17a6.500 6.500 0 1 0 0-13a6.500 6.500 0 0 0 0 13M15.500 15.500L21 21",
  bell: "M6 17V11a6 6 0 0 1 12 0v6l1.500 1.500h-15zM10 21h4",
  clip: "M20 11.500l-8 8a5 5 0 0 1-7-7l8.500-8.500a3.300 3.300 0 0 1 4.700 4.700L10 17a1.600 1.600 0 0 1-2.300-2.300l7.300-7.300",
  file: "M6 3h8l5 5v13H6zM14 3v5h5",
  film: "M4 5h16v14H4zM8 5v14M16 5v14M4 9.700h4M4 14.300h4M16 9.700h4M16 14.300h4",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
}

/** For the eye alone: what it stands beside says what it means. */
export function icon(name) {
  const svg = document.createElementNS(NAMESPACE, "svg")
  for (const [key, value] of Object.entries({ viewBox: "0 0 24 24", class: "sign", "aria-hidden": "true" })) {
    svg.setAttribute(key, value)
  }
  const path = document.createElementNS(NAMESPACE, "path")
  path.setAttribute("d", PATHS[name])
  svg.append(path)
  return svg
}
