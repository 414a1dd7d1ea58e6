// The overview: how far the migration is, what needs attention, and where each client stands.

import { get } from "../api.js";
import { spanFrom, timelineChart } from "../chart.js";
import { h, put, row, table } from "../dom.js";
import { ago, compact, count, dateTime, plural, share } from "../format.js";
import { STAGES, stageName } from "../sides.js";

const RECENT = 6;
const CLIENTS = 12;
const MATRIX_MS = 3000;

const LINKS = {
  tripped: (item) => `#/flags?search=${encodeURIComponent(item.subject)}`,
  configuration: () => "#/configuration",
  readiness: () => "#/configuration",
  failed_candidates: (item) => `#/differences?route=${encodeURIComponent(item.subject)}`,
  mismatches: (item) => `#/differences?route=${encodeURIComponent(item.subject)}`,
};

const LABELS = { kill_switch: "Kill switch", configuration: "Configuration", readiness: "Readiness" };

function tile(title, value, detail, link) {
  const content = [h("span", { class: "tile-title" }, title), h("strong", {}, value), h("span", { class: "faint" }, detail)];
  return link ? h("a", { class: "tile", href: link }, content) : h("div", { class: "tile" }, content);
}

function sum(intervals, ...names) {
  return intervals.reduce((all, one) => all + names.reduce((part, name) => part + one[name], 0), 0);
}

function tiles(overview) {
  const { timeline, calls } = overview;
  const recent = timeline.intervals.slice(-RECENT);
  const isRecent = sum(recent, "old", "new") > 0;
  const [moved, served] = isRecent ? [sum(recent, "new"), sum(recent, "old", "new")] : [calls.new, calls.old + calls.new];
  const last = recent.at(-1);
  const active = last ? last.clients_old + last.clients_both + last.clients_new : 0;
  const span = isRecent ? `in the last ${plural(spanFrom(timeline, timeline.intervals.length - recent.length), "second")}` : "since counting began";
  const errors = overview.attention.filter((item) => item.severity === "error").length;
  return h("div", { class: "tiles" },
    tile("Calls on the new side", share(moved, served), `${compact(moved)} of ${compact(served)} ${span}`),
    tile("Clients on the new side", active === 0 ? "–" : `${last.clients_new} of ${active}`, active === 0 ? "none has called lately" : `${last.clients_both} on both sides`, "#/clients"),
    tile("All calls", compact(calls.old + calls.new + calls.refused), `${compact(calls.refused)} refused`, "#/routes"),
    tile("Flags", count(overview.flags), `${plural(overview.routes, "route")}, ${plural(overview.clients, "client")}`, "#/flags"),
    tile("Needs attention", count(overview.attention.length + overview.more), errors === 0 ? "no errors" : plural(errors, "error")));
}

function attentionItem(item) {
  const link = LINKS[item.kind]?.(item);
  const subject = item.subject || LABELS[item.kind];
  return h("li", { class: item.severity },
    h("span", { class: "severity" }, item.severity),
    h("span", { class: "what" }, link ? h("a", { href: link }, subject) : h("strong", {}, subject), ` ${item.text}`),
    item.at && h("time", { datetime: item.at, title: dateTime(item.at), class: "faint" }, ago(item.at)));
}

function attention(overview) {
  const items = overview.attention;
  if (items.length === 0) return h("p", { class: "calm" }, "Nothing needs attention.");
  return [h("ul", { class: "attention" }, items.map(attentionItem)), overview.more > 0 && h("p", { class: "faint" }, `and ${plural(overview.more, "more item")}`)];
}

function cell(stage, calls, all) {
  if (calls === 0) return h("span", { class: "faint" }, "·");
  const step = Math.ceil((calls / all) * 4);
  return h("span", { class: `heat heat-${step} ${stage}`, title: share(calls, all) }, compact(calls));
}

function matrix(page) {
  const columns = [{ title: "Client" }, ...STAGES.map((stage) => ({ title: stageName(stage), class: "number" })), { title: "Moved", class: "number" }];
  const rows = page.items.map((client) => {
    const all = STAGES.reduce((calls, stage) => calls + client.stages[stage], 0);
    const cells = STAGES.map((stage) => cell(stage, client.stages[stage], all));
    const moved = share(client.calls.new, client.calls.old + client.calls.new);
    return row(columns, [h("a", { href: `#/clients?search=${encodeURIComponent(client.name)}` }, client.name), ...cells, moved]);
  });
  const more = page.total - page.items.length;
  return [table("Calls of each client by stage", columns, rows, { class: "matrix" }),
    more > 0 && h("p", {}, h("a", { href: "#/clients" }, `All ${count(page.total)} clients`))];
}

export function overviewPage() {
  const parts = { tiles: h("div"), chart: h("div"), attention: h("div"), matrix: h("div") };
  const element = h("div", {}, h("h1", {}, "Overview"), parts.tiles,
    h("div", { class: "columns" },
      h("section", { class: "panel grow" }, h("h2", {}, "Share on the new side"), parts.chart),
      h("section", { class: "panel" }, h("h2", {}, "Needs attention"), parts.attention)),
    h("section", { class: "panel" }, h("h2", {}, "Clients by stage"), h("p", { class: "faint" }, "Calls of this process since its start, the busiest clients first."), parts.matrix));
  let drawn = "";
  let lastMatrix = 0;

  async function loadMatrix() {
    lastMatrix = Date.now();
    try {
      const page = await get("clients", { sort: "calls", limit: CLIENTS });
      put(parts.matrix, page.total === 0 ? h("p", { class: "faint" }, "No client is configured, and none has called.") : matrix(page));
    } catch (error) {
      parts.matrix.replaceChildren(h("p", { class: "notice error" }, error.message));
    }
  }

  function show(overview) {
    parts.tiles.replaceChildren(tiles(overview));
    if (!parts.attention.contains(document.activeElement)) put(parts.attention, attention(overview));
    const key = JSON.stringify(overview.timeline);
    if (key !== drawn && !parts.chart.contains(document.activeElement)) {
      drawn = key;
      parts.chart.replaceChildren(timelineChart(overview.timeline));
    }
    if (Date.now() - lastMatrix > MATRIX_MS && !parts.matrix.contains(document.activeElement)) loadMatrix();
  }

  return { title: "Overview", element, start: loadMatrix, show };
}
