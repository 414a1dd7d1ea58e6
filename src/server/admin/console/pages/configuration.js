// The configuration: the plan in force, the problems of the last reload, a reload, and the recording of calls.

import { change, get } from "../api.js";
import { confirmChange } from "../dialog.js";
import { h, put, row, table, toast } from "../dom.js";
import { ago, count, dateTime, plural } from "../format.js";
import { localList } from "../list.js";
import { recordingPanel } from "../recording.js";
import { stageBadge } from "../sides.js";

const MOST = 25;
const EVERY_MS = 3000;

function problem(one) {
  return h("li", {}, h("p", {}, one.line !== null && [h("span", { class: "badge error" }, `line ${one.line}`), " "], one.key && [h("code", {}, one.key), ": "], one.message), one.hint && h("p", { class: "faint" }, `hint: ${one.hint}`));
}

// Groups problems by file, in the order of lines.
function problems(found) {
  const files = Map.groupBy(found, (one) => one.file || one.place);
  return [...files].map(([file, some]) => h("section", {}, h("h3", {}, h("code", {}, file)), h("ol", { class: "problems" }, some.map(problem))));
}

function facts(status, overview) {
  const pairs = [
    ["Version", status.version], ["Replica", status.replica], ["Read", h("time", { datetime: status.loaded_at, title: dateTime(status.loaded_at) }, ago(status.loaded_at))],
    ["Reloads", `${count(status.reloads.succeeded)} in force, ${count(status.reloads.failed)} refused`], ["Revision of changes", count(status.revision)],
    overview && ["Routes", count(overview.routes)], overview && ["Clients", count(overview.clients)], overview && ["Flags", count(overview.flags)],
  ].filter(Boolean);
  return h("dl", { class: "facts" }, pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function upstreams(found) {
  const columns = [{ title: "Upstream" }, { title: "Side" }];
  return table("Upstreams", columns, found.map((one) => row(columns, [one.name, one.side])));
}

function notices(found) {
  return found.map(([kind, text]) => h("p", { class: `notice ${kind}` }, text));
}

export function configurationPage() {
  const places = { facts: h("div"), refused: h("div"), defaults: h("p") };
  const lists = {
    problems: localList({ noun: "problems", limit: MOST, text: (one) => [one.place, one.key, one.message].join(" "), show: problems, empty: h("p", { class: "calm" }, "The files in force have no problems.") }),
    notices: localList({ noun: "notices", limit: MOST, text: ([, text]) => text, show: notices, empty: h("p", { class: "calm" }, "Ready to serve calls.") }),
    upstreams: localList({ noun: "upstreams", limit: MOST, text: (one) => one.name, show: upstreams, empty: "No upstream is configured." }),
    files: localList({ noun: "files", limit: MOST, text: String, show: (files) => h("ul", {}, files.map((file) => h("li", {}, h("code", {}, file)))), empty: "No file was read." }),
  };
  const button = h("button", { type: "button", class: "primary", onclick: reload }, "Reload the files");
  const recording = recordingPanel();
  const panel = (title, content) => h("section", { class: "panel" }, h("h2", {}, title), content);
  const element = h("div", {}, h("div", { class: "title" }, h("h1", {}, "Configuration"), button), panel("In force", places.facts),
    panel("Problems of the last reload", [places.refused, lists.problems.element]), panel("Readiness", lists.notices.element), recording.element,
    panel("Upstreams and defaults", [lists.upstreams.element, places.defaults]), panel("Files", lists.files.element));
  let last = 0;
  let overview = null;

  async function load() {
    last = Date.now();
    recording.load();
    try {
      const status = await get("status");
      put(places.facts, facts(status, overview));
      const faults = status.problems.length;
      put(places.refused, faults > 0 && h("p", { class: "notice error" }, `${plural(faults, "problem")}: the previous configuration stays in force.`));
      lists.problems.set(status.problems);
      lists.notices.set([...status.obstacles.map((text) => ["error", text]), ...status.notes.map((text) => ["warning", text])]);
      lists.upstreams.set(status.upstreams);
      put(places.defaults, "Calls that no flag matches: REST ", stageBadge(status.defaults.rest), " RPC ", stageBadge(status.defaults.rpc));
      lists.files.set(status.files);
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
