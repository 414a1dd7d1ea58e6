// The routes as a list, and one route: both sides, what translation loses, who calls it, and whether it can go.

import { get, segment } from "../api.js";
import { h, put, row, table } from "../dom.js";
import { ago, compact, count, dateTime, duration, milliseconds, plural, share } from "../format.js";
import { localList, pagedList } from "../list.js";
import { callPatterns, outcomeList } from "../patterns.js";
import { stageBar } from "../sides.js";

const LIMIT = 50;
const EVERY_MS = 3000;
// The lists of a route, so that all of them have at most a hundred rows.
const CALLERS = 15;
const EXAMPLES = 5;
const REASONS = 10;
const DIRECTIONS = 10;
const WITNESSES = 3;
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

const CALLER = [{ title: "Client" }, { title: "Side" }, { title: "Stages since start" }, { title: "Old, in all", class: "number" }, { title: "New, in all", class: "number" }, { title: "Last call" }];

// The callers of all replicas, each with its stages of this process and its age, so that a row changes with them.
function callers(route) {
  return (route.usage?.callers || []).map((caller) => {
    const served = route.callers.find((one) => one.client === caller.client && one.side === caller.side);
    const last = [caller.old.last, caller.new.last, caller.refused.last].filter(Boolean).sort().at(-1);
    return { ...caller, stages: served?.stages, last, age: ago(last) };
  });
}

function callerRow(caller) {
  return row(CALLER, [
    h("a", { href: `#/clients?search=${encodeURIComponent(caller.client)}` }, caller.client), caller.side,
    caller.stages ? stageBar(caller.stages) : h("span", { class: "faint" }, "–"), count(caller.old.calls), count(caller.new.calls),
    h("time", { datetime: caller.last, title: dateTime(caller.last) }, caller.age),
  ]);
}

const VERDICTS = { "safe to delete": "ok", "not yet": "warning", unknown: "warning", "not deprecated": "" };

function deletion(route) {
  const { usage } = route;
  if (!usage) return h("p", { class: "faint" }, "Not counted.");
  const deprecated = usage.deprecated;
  const words = deprecated && `Its ${deprecated.side} side is deprecated since ${dateTime(deprecated.since)}${deprecated.sunset ? `, and ends ${dateTime(deprecated.sunset)}` : ""}.`;
  const watched = usage.evidence.watched_since;
  return [h("p", {}, h("span", { class: `badge ${VERDICTS[usage.verdict] || ""}` }, usage.verdict), " ", words || "No deprecation is announced for it."),
    watched && h("p", { class: "faint" }, `Calls have been counted for ${duration(usage.evidence.watched_seconds)} without a gap, on ${plural(usage.evidence.replicas, "replica")}.`)];
}

function example(one) {
  const reply = one.reply && [h("dt", {}, "Reply"), h("dd", {}, h("code", {}, one.reply.rest)), h("dd", {}, h("code", {}, one.reply.rpc))];
  return h("dl", { class: "example" }, h("dt", {}, "Call"), h("dd", {}, h("code", {}, one.rest, one.body && ` ${one.body}`)), h("dd", {}, h("code", {}, one.rpc)), reply);
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
  return h("li", {}, h("details", {}, h("summary", {}, title, h("span", { class: "faint" }, ` ${found[0].says}${found.length > 1 ? `, and ${found.length - 1} more` : ""}`)), h("ul", {}, found.slice(0, WITNESSES).map(witness)),
    found.length > WITNESSES && h("p", { class: "faint" }, `and ${plural(found.length - WITNESSES, "more message")}; \`dualgauge check\` lists all.`)));
}

export function routePage({ name }) {
  const top = h("div", {}, h("p", { class: "faint" }, "Loading."));
  const places = { patterns: h("div"), latency: h("div"), more: h("div"), deletion: h("div"), checked: h("div", {}, h("p", { class: "faint" }, "Checking.")) };
  const lists = {
    outcomes: outcomeList(),
    callers: localList({ noun: "callers", limit: CALLERS, text: (one) => one.client, show: (some) => table("Callers", CALLER, some.map(callerRow), { class: "stack" }), empty: "Nobody has called it." }),
    reasons: localList({ noun: "reasons", limit: REASONS, text: String, show: (some) => h("ul", {}, some.map((reason) => h("li", {}, reason))), empty: [] }),
    directions: localList({ noun: "directions", limit: DIRECTIONS, text: (one) => [one.row, one.verdict, one.kind].join(" "), show: (some) => h("ul", { class: "directions" }, some.map(direction)), empty: "Nothing is translated on this route." }),
    failed: localList({ noun: "failed examples", limit: EXAMPLES, text: (one) => `${one.key} ${one.message}`, show: (some) => some.map((one) => h("p", { class: "notice error" }, h("code", {}, one.key), `: ${one.message}`)), empty: [] }),
    examples: localList({ noun: "examples", limit: EXAMPLES, text: (one) => `${one.rest} ${one.rpc}`, show: (some) => some.map(example), empty: "The route table has no example of it." }),
  };
  const panel = (title, ...content) => h("section", { class: "panel" }, h("h2", {}, title), content);
  const element = h("div", {}, h("p", {}, h("a", { href: "#/routes" }, "‹ Routes")), h("h1", {}, name), top, panel("Patterns", places.patterns),
    panel("Latency, old against new", places.latency), panel("Callers", lists.callers.element, places.more), panel("Can it be deleted?", places.deletion, lists.reasons.element),
    panel("Values kept in translation", places.checked),
    panel("Outcomes", lists.outcomes.element, h("p", { class: "faint" }, "The built-in table translates every response that no outcome matches.")), panel("Examples", lists.examples.element));
  let last = 0;
  let drawn = "";

  // Patterns change only with a reload; drawing them anew would lose what a person has selected.
  function drawPatterns(patterns) {
    const key = JSON.stringify(patterns);
    if (key === drawn) return;
    drawn = key;
    put(places.patterns, callPatterns(patterns));
    lists.outcomes.set(patterns);
  }

  async function load() {
    last = Date.now();
    try {
      const route = await get(`routes/${segment(name)}`);
      put(top, [route.about && h("p", {}, route.about), h("p", { class: "facts-line" }, `Effect: ${route.effect}.`, route.from && ` Called from ${route.from} only.`, route.lossy && ` Accepted loss: ${route.lossy}.`, " ", h("a", { href: `#/differences?route=${encodeURIComponent(name)}` }, "Its differences"))]);
      drawPatterns(route.patterns);
      // A table that has the focus stays.
      if (!places.latency.contains(document.activeElement)) put(places.latency, latency(route));
      lists.callers.set(callers(route));
      put(places.more, route.more_callers > 0 && h("p", { class: "faint" }, `and ${plural(route.more_callers, "more caller")}; \`dualgauge usage\` lists all.`));
      put(places.deletion, deletion(route));
      lists.reasons.set(route.usage?.reasons || []);
      lists.examples.set(route.examples);
    } catch (error) {
      put(top, h("p", { class: "notice error" }, error.message));
    }
  }

  async function check() {
    try {
      const checked = await get(`routes/${segment(name)}/verdict`);
      put(places.checked, lists.directions.element, checked.failed_examples.length > 0 && lists.failed.element);
      lists.directions.set(checked.directions);
      lists.failed.set(checked.failed_examples);
    } catch (error) {
      put(places.checked, h("p", { class: "notice error" }, error.message));
    }
  }

  return {
    title: name, element,
    start() { load(); check(); },
    changed() { load(); check(); },
    show() { if (last > 0 && Date.now() - last > EVERY_MS && !top.contains(document.activeElement)) load(); },
  };
}
