// Elements are built from strings by textContent alone, so no text of a block is ever read as HTML.

/** Return an element. `properties` are attributes, or listeners if they are functions; children are elements or strings. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children) {
    if (child !== null) made.append(child);
  }
  return made;
}

/** A share from 0 to 1, as a bar with its number. */
export function bar(share, label) {
  const filled = element("span");
  filled.style.width = `${(100 * share).toFixed(2)}%`;
  return element("div", { class: "share" },
    element("span", { class: "bar", "aria-hidden": "true" }, filled),
    element("span", { class: "number" }, `${label} ${shown(share)}`));
}

/** A probability in three digits, and a small one in words. */
export function shown(share) {
  return share > 0 && share < 0.0005 ? "< 0.001" : share.toFixed(3);
}

/** A text with parts marked. Offsets count Unicode characters, as Python does; a part that overlaps a better one is left out. */
export function marked(text, parts) {
  const characters = Array.from(text);
  const made = element("p", { class: "text" });
  let at = 0;
  const kept = [];
  for (const part of [...parts].sort((one, other) => one.rank - other.rank)) {
    if (kept.every((better) => part.end <= better.start || better.end <= part.start)) kept.push(part);
  }
  for (const part of kept.sort((one, other) => one.start - other.start)) {
    made.append(characters.slice(at, part.start).join(""));
    made.append(element("mark", { class: part.rank ? "other" : "best" }, characters.slice(part.start, part.end).join("")));
    at = part.end;
  }
  made.append(characters.slice(at).join(""));
  return made;
}
