// Elements of the page. Text is only ever added as text: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Makes an HTML element: h("p", { class: "faint" }, "text", child).
export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

// Makes an SVG element.
export function s(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

// Replaces the content of an element. Empty parts are left out.
export function put(place, ...content) {
  place.replaceChildren(...content.flat(4).filter((part) => part !== null && part !== undefined && part !== false));
}

export function byId(id) {
  return document.getElementById(id);
}

let counter = 0;

// Returns an id that no other element has.
export function freshId(name) {
  counter += 1;
  return `${name}-${counter}`;
}

// Makes a labelled input.
export function field(label, input, hint) {
  input.id ||= freshId("field");
  const hintId = hint && `${input.id}-hint`;
  if (hint) input.setAttribute("aria-describedby", hintId);
  return h("p", { class: "field" }, h("label", { for: input.id }, label), input, hint && h("span", { class: "hint", id: hintId }, hint));
}

// Sets the text of a live region. Equal text is not set again: some screen readers would read it again.
export function announce(region, text) {
  if (region.textContent !== text) region.textContent = text;
}

// Shows a short message that a screen reader announces.
export function toast(text, kind = "info") {
  const message = h("p", { class: `toast ${kind}` }, text);
  byId("toasts").append(message);
  setTimeout(() => message.remove(), kind === "error" ? 12000 : 5000);
}

// Copies a text; returns whether that worked.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without a secure context there is no clipboard API.
    const area = h("textarea", { class: "offscreen", value: text, "aria-hidden": "true" });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// A button that copies a text and says so.
export function copyButton(label, text) {
  return h("button", { type: "button", onclick: async () => toast((await copyText(text)) ? "Copied." : "Copying failed; select the text instead.") }, label);
}

// Makes a table with roles, since narrow screens show its rows as blocks.
export function table(caption, columns, rows, attributes) {
  const head = columns.map((column) => h("th", { scope: "col", role: "columnheader", class: column.class }, column.title));
  return h("table", { role: "table", ...attributes },
    h("caption", { class: "visually-hidden" }, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)),
    h("tbody", { role: "rowgroup" }, rows));
}

// Makes a row: one cell for each column.
export function row(columns, cells, attributes) {
  return h("tr", { role: "row", ...attributes }, cells.map((cell, at) =>
    h("td", { role: "cell", class: columns[at].class, "data-label": columns[at].title }, cell)));
}
