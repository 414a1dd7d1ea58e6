// The routes as a list, and one route: both sides, what translation loses, who calls it, and whether it can go.

import { get, segment } from "../api.js";
import { h, put, row, table } from "../dom.js";
import { ago, compact, count, dateTime, duration, milliseconds, share } from "../format.js";
import { pagedList } from "../list.js";
import { stageBar } from "../sides.js";

const LIMIT = 50;
const EVERY_MS = 3000;
const SHOWN = 2;
const MOST = 20;
const LIST = [{ title: "Route" }, { title: "REST" }, { title: "RPC" }, { title: "Stages" }, { title: "Moved", class: "number" }, { title: "Last call" }];

function path(name) {
  return `#/routes/${encodeURIComponent(name)}`;
}

function listRow(route) {
  const { old, new: moved } = route.calls;
  return row(LIST, [
    [h("a", { href: path(route.name) }, route.name), route.deprecated && h("span", { class: "badge warning" }, `${route.deprecated} deprecated`), route.effect !== "safe" && h("span", { class: "badge" }, route.effect)],
    h("code", {}, route.rest), h("code", {}, route.rpc), stageBar(route.stages), share(moved, old + moved),
    h("time", { datetime: route.last, title: dateTime(route.last) }, ago(route.last)),
  ]);
}

export function routesPage() {
  const sort = h("select", { "aria-label": "Order" }, h("option", { value: "name" }, "as configured"), h("option", { value: "calls" }, "most calls first"));
  const list = pagedList({
    noun: "routes", limit: LIMIT, controls: [sort],
    load: (query) => get("routes", { ...query, sort: sort.value }),
    show: (items) => table("Routes", LIST, items.map(listRow), { class: "stack" }),
    empty: "The configuration has no routes: every call passes through.",
  });
  sort.addEventListener("change", list.refresh);
  return { title: "Routes", element: h("div", {}, h("h1", {}, "Routes"), list.element), start: list.refresh, changed: list.refreshIfIdle };
}

function sides(route) {
  return h("div", { class: "panes" },
    h("section", { class: "pane" }, h("h2", {}, "REST"), h("pre", { tabindex: 0, role: "region", "aria-label": "REST pattern" }, route.rest)),
    h("section", { class: "pane" }, h("h2", {}, "JSON-RPC"), h("pre", { tabindex: 0, role: "region", "aria-label": "RPC pattern" }, route.rpc)));
}

function bar(part, all, kind) {
  const fill = h("span", { class: `fill ${kind}` });
  fill.style.setProperty("width", `${all === 0 ? 0 : Math.max(1, (part / all) * 100)}%`);
  return h("span", { class: "meter", "aria-hidden": "true" }, fill);
}

function latency(route) {
  const columns = [{ title: "Served by" }, { title: "Calls", class: "number" }, { title: "Median", class: "number" }, { title: "95 %", class: "number" }, { title: "99 %", class: "number" }, { title: "95 % compared" }];
  const kinds = [["old", "old side"], ["new", "new side"], ["candidates", "candidates (compared)"]];
  const longest = Math.max(...kinds.map(([kind]) => route.latency[kind].p95_ms));
  const rows = kinds.map(([kind, title]) => {
    const one = route.latency[kind];
    const time = (ms) => (one.count === 0 ? "–" : milliseconds(ms));
    return row(columns, [title, compact(one.count), time(one.p50_ms), time(one.p95_ms), time(one.p99_ms), one.count > 0 && bar(one.p95_ms, longest, kind)]);
  });
  return table("Latency", columns, rows, { class: "latency", tabindex: 0 });
}

function callers(route) {
  const columns = [{ title: "Client" }, { title: "Side" }, { title: "Stages since start" }, { title: "Old, in all", class: "number" }, { title: "New, in all", class: "number" }, { title: "Last call" }];
  const counted = route.usage ? route.usage.callers : [];
  if (counted.length === 0) return h("p", { class: "faint" }, "Nobody has called it.");
  const rows = counted.slice(0, LIMIT).map((caller) => {
    const served = route.callers.find((one) => one.client === caller.client && one.side === caller.side);
    const last = [caller.old.last, caller.new.last, caller.refused.last].filter(Boolean).sort().at(-1);
    return row(columns, [h("a", { href: `#/clients?search=${encodeURIComponent(caller.client)}` }, caller.client), caller.side, served ? stageBar(served.stages) : h("span", { class: "faint" }, "–"), count(caller.old.calls), count(caller.new.calls), h("time", { datetime: last, title: dateTime(last) }, ago(last))]);
  });
  const more = counted.length - rows.length + route.more_callers;
  return [table("Callers", columns, rows, { class: "stack" }), more > 0 && h("p", { class: "faint" }, `and ${count(more)} more; \`dualgauge usage\` lists all.`)];
}

const VERDICTS = { "safe to delete": "ok", "not yet": "warning", unknown: "warning", "not deprecated": "" };

function deletion(route) {
  const { usage } = route;
  if (!usage) return h("p", { class: "faint" }, "Not counted.");
  const deprecated = usage.deprecated;
  const words = deprecated && `Its ${deprecated.side} side is deprecated since ${dateTime(deprecated.since)}${deprecated.sunset ? `, and ends ${dateTime(deprecated.sunset)}` : ""}.`;
  const watched = usage.evidence.watched_since;
  return [h("p", {}, h("span", { class: `badge ${VERDICTS[usage.verdict] || ""}` }, usage.verdict), " ", words || "No deprecation is announced for it."),
    usage.reasons.length > 0 && h("ul", {}, usage.reasons.map((reason) => h("li", {}, reason))),
    watched && h("p", { class: "faint" }, `Calls have been counted for ${duration(usage.evidence.watched_seconds)} without a gap, on ${count(usage.evidence.replicas)} replica${usage.evidence.replicas === 1 ? "" : "s"}.`)];
}

function example(one) {
  const reply = one.reply && [h("dt", {}, "Reply"), h("dd", {}, h("code", {}, one.reply.rest)), h("dd", {}, h("code", {}, one.reply.rpc))];
  return h("dl", { class: "example" }, h("dt", {}, "Call"), h("dd", {}, h("code", {}, one.rest, one.body && ` ${one.body}`)), h("dd", {}, h("code", {}, one.rpc)), reply);
}

function examplesOf(all) {
  const more = all.slice(SHOWN, MOST);
  return [all.slice(0, SHOWN).map(example), more.length > 0 && h("details", {}, h("summary", {}, `${more.length} more`), more.map(example))];
}

function witness(one) {
  const code = (text) => h("code", {}, text);
  return h("li", {}, one.says, h("dl", { class: "example" }, h("dt", {}, "Sent"), h("dd", {}, code(one.sent)),
    one.gets && [h("dt", {}, "Arrives"), h("dd", {}, code(one.gets))], one.back && [h("dt", {}, "Comes back"), h("dd", {}, code(one.back))],
    one.refused && [h("dt", {}, "Refused"), h("dd", {}, one.refused)]));
}

const DIRECTION = { request: "calls", outcome: "replies", builtin: "other replies" };
const LOSS = { lossless: "ok", normal_form: "ok", lossy: "error", never: "" };
const LOSS_WORDS = { lossless: "lossless", normal_form: "normal form", lossy: "lossy", never: "never" };

function direction(one) {
  const title = h("span", {}, h("span", { class: `badge ${LOSS[one.verdict]}` }, LOSS_WORDS[one.verdict]), ` ${DIRECTION[one.kind]} from ${one.from === "rest" ? "REST" : "RPC"}`, one.row && h("code", {}, ` ${one.row}`));
  const found = [...one.losses, ...one.norms, ...one.refusals];
  if (found.length === 0) return h("li", {}, title, h("span", { class: "faint" }, one.never ? `: ${one.never}` : `, tried with ${count(one.tried)} messages`));
  return h("li", {}, h("details", {}, h("summary", {}, title, h("span", { class: "faint" }, ` ${found[0].says}${found.length > 1 ? `, and ${found.length - 1} more` : ""}`)), h("ul", {}, found.map(witness))));
}

function verdict(checked) {
  if (checked.directions.length === 0) return h("p", { class: "faint" }, "Nothing is translated on this route.");
  const failed = checked.failed_examples;
  return [h("ul", { class: "directions" }, checked.directions.map(direction)),
    failed.length > 0 && h("div", { class: "notice error" }, failed.map((one) => h("p", {}, h("code", {}, one.key), `: ${one.message}`)))];
}

export function routePage({ name }) {
  const top = h("div", {}, h("p", { class: "faint" }, "Loading."));
  const live = { latency: h("div"), callers: h("div"), deletion: h("div") };
  const checked = h("div", {}, h("p", { class: "faint" }, "Checking."));
  const panel = (title, content) => h("section", { class: "panel" }, h("h2", {}, title), content);
  const examples = h("div");
  const element = h("div", {}, h("p", {}, h("a", { href: "#/routes" }, "‹ Routes")), h("h1", {}, name), top,
    panel("Latency, old against new", live.latency), panel("Callers", live.callers), panel("Can it be deleted?", live.deletion), panel("What translation keeps", checked), panel("Examples", examples));
  let last = 0;
  let drawn = "";

  // Examples change only with a reload; drawing them anew would close what a person has opened.
  function drawExamples(all) {
    const key = JSON.stringify(all);
    if (key === drawn) return;
    drawn = key;
    put(examples, all.length > 0 ? examplesOf(all) : h("p", { class: "faint" }, "The route table has no example of it."));
  }

  async function load() {
    last = Date.now();
    try {
      const route = await get(`routes/${segment(name)}`);
      put(top, [route.about && h("p", {}, route.about), sides(route), h("p", { class: "facts-line" }, `Effect: ${route.effect}.`, route.from && ` Called from ${route.from} only.`, route.lossy && ` Accepted loss: ${route.lossy}.`, " ", h("a", { href: `#/differences?route=${encodeURIComponent(name)}` }, "Its differences"))]);
      put(live.latency, latency(route));
      if (!live.callers.contains(document.activeElement)) put(live.callers, callers(route));
      put(live.deletion, deletion(route));
      drawExamples(route.examples);
    } catch (error) {
      put(top, h("p", { class: "notice error" }, error.message));
    }
  }

  async function check() {
    try {
      put(checked, verdict(await get(`routes/${segment(name)}/verdict`)));
    } catch (error) {
      put(checked, h("p", { class: "notice error" }, error.message));
    }
  }

  return {
    title: name, element,
    start() { load(); check(); },
    changed() { load(); check(); },
    show() { if (last > 0 && Date.now() - last > EVERY_MS && !top.contains(document.activeElement)) load(); },
  };
}
