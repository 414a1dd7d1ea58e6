// The differences between both sides: failed candidates and mismatches by route and field, with the responses side by side.

import { change, get } from "../api.js";
import { confirmChange } from "../dialog.js";
import { copyButton, h, put, row, table, toast } from "../dom.js";
import { ago, count, dateTime } from "../format.js";
import { pagedList } from "../list.js";
import { sideBySide } from "../pointer.js";
import { stageBadge } from "../sides.js";

const LIMIT = 25;
const COLUMNS = [{ title: "Route" }, { title: "Place" }, { title: "Calls", class: "number" }, { title: "Last" }];

const KINDS = {
  missing: "only in the response that the client got", extra: "only in the compared response", type: "another type", value: "another value",
  length: "another length", order: "another order", status: "another status", header: "another header", code: "another error code",
};

// The lines for the configuration that skip a field.
export function ignoreRule(route, field) {
  return `# In the [[route]] with name = ${JSON.stringify(route)}. If it has \`compare\` already, add the path to its \`ignore\`.\ncompare = { ignore = [${JSON.stringify(field)}] }\n`;
}

function call(sample) {
  return h("dl", { class: "facts" }, [
    ["Call", h("code", {}, sample.call)], ["Client", sample.client], ["Side", sample.side], ["Stage", stageBadge(sample.stage)],
    ["When", h("time", { datetime: sample.at, title: dateTime(sample.at) }, ago(sample.at))],
  ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function pane(title, side, lines) {
  const drawn = lines.map((line) => {
    const text = "  ".repeat(line.indent) + line.text[side];
    if (!line.kind) return h("span", { class: `code-line${line.isRest ? " rest" : ""}` }, `${text}\n`);
    return h("mark", { class: `code-line ${side === 0 ? "control" : "candidate"}` }, h("span", { class: "visually-hidden" }, `differs (${KINDS[line.kind] || line.kind}): `), `${text}\n`);
  });
  return h("section", { class: "pane" }, h("h3", {}, title), h("pre", { tabindex: 0, role: "region", "aria-label": title }, drawn));
}

function titles(stage) {
  return stage === "verify" ? ["New side (the client got this)", "Old side (compared)"] : ["Old side (the client got this)", "New side (compared)"];
}

// Shows one call: all its differences that are still recorded.
function mismatch(sample, all) {
  const same = all.filter((one) => one.at === sample.at && one.client === sample.client && one.call === sample.call);
  const lines = sideBySide(same);
  const [left, right] = titles(sample.stage);
  const words = same.length === 1 ? `${sample.pointer}: ${KINDS[sample.kind] || sample.kind}` : `${count(same.length)} places differ in this call`;
  return [call(sample), h("p", {}, words), h("div", { class: "panes" }, pane(left, 0, lines), pane(right, 1, lines)),
    h("p", { class: "faint" }, "Only differing values are recorded, and strings as their length and a hash. ", h("code", {}, "compare.show = true"), " of a route shows them.")];
}

function failure(sample) {
  const [left, right] = titles(sample.stage);
  const lines = [{ indent: 0, text: [sample.control, sample.candidate], kind: "status" }];
  const cause = [sample.reason && h("code", {}, sample.reason), sample.reason && sample.cause && ": ", sample.cause];
  return [call(sample), h("div", { class: "panes" }, pane(left, 0, lines), pane(right, 1, lines)), h("p", {}, "Cause: ", cause.filter(Boolean).length > 0 ? cause : "the server reported an error")];
}

// Shows the samples of a difference, one at a time.
function samples(list, draw) {
  if (list.length === 0) return h("p", { class: "faint" }, "No sample is left.");
  const body = h("div");
  const choose = h("select", { "aria-label": "Call", onchange: () => show(Number(choose.value)) },
    list.map((sample, at) => h("option", { value: String(at) }, `${dateTime(sample.at)} · ${sample.client}`)));
  const show = (at) => put(body, draw(list[at]));
  show(0);
  return h("div", {}, list.length > 1 && h("p", {}, h("label", {}, "One of the last calls: ", choose)), body);
}

async function detail(difference, onReset) {
  const { routes } = await get("mismatches", { route: difference.route });
  const route = routes.find((one) => one.route === difference.route);
  if (!route) return h("p", { class: "faint" }, "The records of this route were deleted.");
  const reset = h("button", { type: "button", class: "quiet", onclick: () => forget(difference.route, onReset) }, "Delete the route's records");
  const link = h("a", { href: `#/routes/${encodeURIComponent(difference.route)}` }, difference.route);
  if (difference.field === null) {
    return h("section", { class: "panel detail" }, h("h2", {}, "Failed candidates of ", link), samples(route.failed.samples, failure), h("p", { class: "buttons" }, reset));
  }
  const field = route.fields.find((one) => one.field === difference.field);
  const all = route.fields.flatMap((one) => one.samples);
  const rule = ignoreRule(difference.route, difference.field);
  return h("section", { class: "panel detail" }, h("h2", {}, h("code", {}, difference.field), " of ", link),
    samples(field ? field.samples : [], (sample) => mismatch(sample, all)),
    h("h3", {}, "Ignore it"), h("p", { class: "faint" }, "If both values are right, these lines in the route table skip the field."),
    h("pre", { tabindex: 0, role: "region", "aria-label": "Ignore rule" }, rule), h("p", { class: "buttons" }, reset, copyButton("Copy the ignore rule", rule)));
}

async function forget(route, done) {
  const why = await confirmChange({ title: "Delete the records?", text: `The recorded failed candidates and mismatches of ${route} are deleted in this process. Counters of metrics keep their values.`, action: "Delete" });
  if (why === null) return;
  try {
    await change("DELETE", `mismatches?route=${encodeURIComponent(route)}`, { why });
    toast("Deleted.");
    done();
  } catch (error) {
    toast(error.message, "error");
  }
}

export function differencesPage(address) {
  const route = address.query.get("route");
  const place = h("div");
  // A screen reader reads a live region whole, so it contains one sentence instead of the responses.
  const status = h("p", { class: "visually-hidden", role: "status" });
  let open = null;
  const list = pagedList({
    noun: "differences", limit: LIMIT,
    load: (query) => get("differences", { ...query, route }),
    show: (items) => {
      if (open === null && items.length > 0 && route) choose(items[0]);
      return table("Differences", COLUMNS, items.map(differenceRow), { class: "stack" });
    },
    empty: "Nothing has differed. In the stages shadow and verify, both sides are compared.",
  });

  function differenceRow(item) {
    const isFailed = item.field === null;
    const title = isFailed ? "failed candidates" : item.field;
    const button = h("button", { type: "button", class: "link", onclick: () => choose(item) }, isFailed ? h("span", { class: "badge error" }, title) : h("code", {}, title));
    return row(COLUMNS, [item.route, button, count(item.count), h("time", { datetime: item.last, title: dateTime(item.last) }, ago(item.last))]);
  }

  function close() {
    open = null;
    place.replaceChildren();
    status.textContent = "";
    list.refresh();
  }

  async function choose(item) {
    open = item;
    status.textContent = "";
    try {
      const shown = await detail(item, close);
      if (open !== item) return;
      place.replaceChildren(shown);
      status.textContent = `Shown: ${(shown.querySelector("h2") || shown).textContent}`;
    } catch (error) {
      if (open !== item) return;
      place.replaceChildren(h("p", { class: "notice error", role: "alert" }, error.message));
    }
  }

  const all = route && h("p", {}, "Only the route ", h("strong", {}, route), ". ", h("a", { href: "#/differences" }, "Show all routes"));
  const element = h("div", {}, h("h1", {}, "Differences"), all, list.element, place, status);
  return { title: "Differences", element, start: list.refresh, changed: list.refreshIfIdle };
}
