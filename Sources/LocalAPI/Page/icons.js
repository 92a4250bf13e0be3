// Signs drawn here: not every machine has a font with them.
const NAMESPACE = "http://www.w3.org/2000/svg"

// Lines in a field of 24 by 24.
const PATHS = {
  hand: "M7 12V6.5a1.5 1.5 0 0 1 3 0V11V4.5a1.5 1.5 0 0 1 3 0V11V5.5a1.5 1.5 0 0 1 3 0V12V8.5a1.5 1.5 0 0 1 3 0V15a7 7"
    + " 0 0 1-7 7c-3 0-4.5-1.5-6-4L3.5 13.5a1.5 1.5 0 0 1 2.5-1.7L7 13",
  people: "M9 11a3.5 3.5 0 1 0 0-7a3.5 3.5 0 0 0 0 7M2.5 20c0-4 2.5-6 6.5-6s6.5 2 6.5 6M16 11a3 3 0 1 0-1"
    + "-5.9M17.5 14.2c2.5.5 4 2.4 4 5.8",
  folder: "M3 6.5a1.5 1.5 0 0 1 1.5-1.5h5l2 2.5h8a1.5 1.5 0 0 1 1.5 1.5v9a1.5 1.5 0 0 1-1.5 1.5h"
    + "-15a1.5 1.5 0 0 1-1.5-1.5z",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13a6.5 6.5 0 0 0 0 13M15.5 15.5L21 21",
  bell: "M6 17V11a6 6 0 0 1 12 0v6l1.5 1.5h-15zM10 21h4",
  clip: "M20 11.5l-8 8a5 5 0 0 1-7-7l8.5-8.5a3.3 3.3 0 0 1 4.7 4.7L10 17a1.6 1.6 0 0 1-2.3-2.3l7.3-7.3",
  file: "M6 3h8l5 5v13H6zM14 3v5h5",
  film: "M4 5h16v14H4zM8 5v14M16 5v14M4 9.7h4M4 14.3h4M16 9.7h4M16 14.3h4",
  menu: "M4 7h16M4 12h16M4 17h16",
  voice: "M12 15a3 3 0 0 0 3-3V6a3 3 0 0 0-6 0v6a3 3 0 0 0 3 3M6 12a6 6 0 0 0 12 0M12 18v3",
  place: "M12 21s7-6.5 7-11.5a7 7 0 0 0-14 0C5 14.500 12 21 12 21M12 12a2.500 2.500 0 1 0 0-5a2.500 2.500 0 0 0 0 5",
  puzzle: "M5 9h4a2.500 2.500 0 1 1 5 0h5v5a2.500 2.500 0 1 0 0 5v2H5z",
  stack: "M12 4l9 4.500l-9 4.500l-9-4.500zM3 12.500l9 4.500l9-4.500M3 16.500l9 4.500l9-4.500",
  pin: "M9 3h6l-1 7l3.500 3.500h-11L10 10zM12 13.500V21",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  reply: "M10 6L4 12l6 6M4 12h9a7 7 0 0 1 7 7",
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
