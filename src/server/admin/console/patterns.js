// The patterns of a route, both sides side by side: its call, and its outcome rows.

import { h } from "./dom.js";
import { pretty } from "./json.js";
import { localList } from "./list.js";

const OUTCOMES = 10;

// The protocol of the left side follows from the keys of its parts.
function leftTitle(parts) {
  const [first] = parts;
  if (first?.name.startsWith("old.")) return "Old message";
  return first?.name === "frame" ? "Frame" : "REST";
}

function part(title, { name, pattern }) {
  const text = pretty(pattern);
  const code = text.includes("\n") ? h("pre", { tabindex: 0, role: "group", "aria-label": `${name} of ${title}` }, text) : h("code", {}, text);
  return [h("dt", {}, name), h("dd", {}, code)];
}

// `level` is the element of the headings.
function panes({ rest, rpc }, left, level) {
  const pane = (title, parts) => h("section", { class: "pane" }, h(level, {}, title),
    parts.length > 0 ? h("dl", { class: "parts" }, parts.map((one) => part(title, one))) : h("p", { class: "faint" }, "Nothing is sent."));
  return h("div", { class: "panes" }, pane(left, rest), pane("JSON-RPC", rpc));
}

function holes({ holes: all }) {
  return all.length > 0 && h("p", {}, "Holes: ", all.map((hole, at) => [at > 0 && ", ", h("code", {}, hole)]));
}

export function callPatterns(patterns) {
  return [panes(patterns, leftTitle(patterns.rest), "h3"), holes(patterns)];
}

function outcome(row) {
  return h("li", {}, h("h3", {}, row.name || h("code", {}, row.key), row.after.length > 0 && h("span", { class: "badge" }, `after ${row.after.join(", ")}`)),
    row.lossy && h("p", { class: "faint" }, `Accepted loss: ${row.lossy}.`), panes(row, row.left, "h4"), holes(row));
}

// Returns a list of outcome rows, which the patterns of a route set.
export function outcomeList() {
  const { element, set } = localList({
    noun: "outcomes", limit: OUTCOMES,
    text: (row) => [row.name, row.key, ...[...row.rest, ...row.rpc].map((one) => one.pattern)].join("\n"),
    show: (rows) => h("ol", { class: "outcomes" }, rows.map(outcome)),
    empty: "The route has no outcomes of its own.",
  });
  // A silence has no parts that name its side.
  return { element, set: ({ rest, outcomes }) => set(outcomes.map((row) => ({ ...row, left: leftTitle(rest) }))) };
}
