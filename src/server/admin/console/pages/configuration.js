// The configuration: the plan in force, the problems of the last reload, a reload, and the recording of calls.

import { change, get } from "../api.js";
import { confirmChange } from "../dialog.js";
import { h, put, row, table, toast } from "../dom.js";
import { ago, count, dateTime } from "../format.js";
import { recordingPanel } from "../recording.js";
import { stageBadge } from "../sides.js";

const MOST = 100;
const EVERY_MS = 3000;

function problem(one) {
  return h("li", {}, h("p", {}, one.line !== null && [h("span", { class: "badge error" }, `line ${one.line}`), " "], one.key && [h("code", {}, one.key), ": "], one.message), one.hint && h("p", { class: "faint" }, `hint: ${one.hint}`));
}

// Groups the problems by file, in the order of lines.
function problems(status) {
  if (status.problems.length === 0) return h("p", { class: "calm" }, "The files in force have no problems.");
  const files = new Map();
  for (const one of status.problems.slice(0, MOST)) {
    const place = one.file || one.place;
    files.set(place, [...(files.get(place) || []), one]);
  }
  return [h("p", { class: "notice error" }, `${count(status.problems.length)} problem${status.problems.length === 1 ? "" : "s"}: the previous configuration stays in force.`),
    [...files].map(([file, found]) => h("section", {}, h("h3", {}, h("code", {}, file)), h("ol", { class: "problems" }, found.map(problem)))),
    status.problems.length > MOST && h("p", { class: "faint" }, `and ${count(status.problems.length - MOST)} more; \`dualgauge check\` lists all.`)];
}

function facts(status, overview) {
  const pairs = [
    ["Version", status.version], ["Replica", status.replica], ["Read", h("time", { datetime: status.loaded_at, title: dateTime(status.loaded_at) }, ago(status.loaded_at))],
    ["Reloads", `${count(status.reloads.succeeded)} in force, ${count(status.reloads.failed)} refused`], ["Revision of changes", count(status.revision)],
    overview && ["Routes", count(overview.routes)], overview && ["Clients", count(overview.clients)], overview && ["Flags", count(overview.flags)],
  ].filter(Boolean);
  return h("dl", { class: "facts" }, pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function plan(found) {
  const columns = [{ title: "Upstream" }, { title: "Side" }];
  const upstreams = found.upstreams.slice(0, MOST).map((one) => row(columns, [one.name, one.side]));
  return [table("Upstreams", columns, upstreams), h("p", {}, "Calls that no flag matches: REST ", stageBadge(found.defaults.rest), " RPC ", stageBadge(found.defaults.rpc))];
}

function readiness(status) {
  const all = [...status.obstacles.map((text) => ["error", text]), ...status.notes.map((text) => ["warning", text])];
  if (all.length === 0) return h("p", { class: "calm" }, "Ready to serve calls.");
  return all.map(([kind, text]) => h("p", { class: `notice ${kind}` }, text));
}

export function configurationPage() {
  const places = { facts: h("div"), problems: h("div"), readiness: h("div"), plan: h("div"), files: h("div") };
  const button = h("button", { type: "button", class: "primary", onclick: reload }, "Reload the files");
  const recording = recordingPanel();
  const panel = (title, content) => h("section", { class: "panel" }, h("h2", {}, title), content);
  const element = h("div", {}, h("div", { class: "title" }, h("h1", {}, "Configuration"), button), panel("In force", places.facts),
    panel("Problems of the last reload", places.problems), panel("Readiness", places.readiness), recording.element, panel("Upstreams and defaults", places.plan), panel("Files", places.files));
  let last = 0;
  let overview = null;

  async function load() {
    last = Date.now();
    recording.load();
    try {
      const status = await get("status");
      put(places.facts, facts(status, overview));
      put(places.problems, problems(status));
      put(places.readiness, readiness(status));
      put(places.plan, plan(status));
      put(places.files, h("ul", {}, status.files.slice(0, MOST).map((file) => h("li", {}, h("code", {}, file)))));
    } catch (error) {
      put(places.facts, h("p", { class: "notice error" }, error.message));
    }
  }

  async function reload() {
    const why = await confirmChange({ title: "Reload the files?", text: "If they have problems, the configuration in force stays.", action: "Reload" });
    if (why === null) return;
    try {
      const done = await change("POST", "reload", { why });
      toast(done.result === "swapped" ? "The new configuration is in force." : "The files have not changed.");
    } catch (error) {
      toast(error.message, "error");
    }
    load();
  }

  return {
    title: "Configuration", element,
    start: load,
    changed: load,
    show(next) {
      overview = next;
      if (Date.now() - last > EVERY_MS) load();
    },
  };
}
