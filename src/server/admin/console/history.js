// The history of changes: of one flag, or of everything.

import { change, get } from "./api.js";
import { confirmChange } from "./dialog.js";
import { h, row, table, toast } from "./dom.js";
import { ago, dateTime } from "./format.js";
import { localList } from "./list.js";

const LIMIT = 20;
const COLUMNS = [{ title: "When" }, { title: "Who and why" }, { title: "What" }, { title: "Before" }, { title: "After" }];

const WORDS = {
  flip: "changed", unflip: "reset to the file", trip: "tripped by its guard", rearm: "re-armed", advance: "next step of the ramp",
  kill: "kill switch on", revive: "kill switch off", call_off: "brownouts cancelled", call_on: "brownouts resumed", undo: "undone",
};

// Describes the state on one side of a change.
function state(value) {
  if (value.flag) {
    const { standing } = value.flag;
    if (!standing) return "as in the file";
    const parts = [standing.flip && `${standing.flip.stage} ${standing.flip.percent} %`, standing.trip && "tripped", standing.ramp && `step ${standing.ramp.step + 1}`];
    return parts.filter(Boolean).join(", ") || "as in the file";
  }
  if (value.kill) return value.kill.kill ? "on" : "off";
  return value.brownouts.called_off.join(", ") || "none cancelled";
}

function historyRow(entry) {
  const flag = entry.before.flag?.flag;
  return row(COLUMNS, [
    h("time", { datetime: entry.by.at, title: dateTime(entry.by.at) }, ago(entry.by.at)),
    [h("strong", {}, entry.by.who), entry.by.why && h("span", { class: "sub" }, entry.by.why)],
    [flag && h("code", {}, flag), " ", WORDS[entry.what] || entry.what, entry.undone && h("span", { class: "badge" }, "undone")],
    state(entry.before),
    state(entry.after),
  ]);
}

// Returns the list; `afterUndo` adds a button that undoes the last change of anything.
export function historyList(flag, afterUndo) {
  const changes = localList({
    noun: "changes", limit: LIMIT,
    text: (entry) => [entry.by.who, entry.by.why, entry.before.flag?.flag, WORDS[entry.what] || entry.what].filter(Boolean).join("\n"),
    show: (entries) => table("Changes, newest first", COLUMNS, entries.map(historyRow), { class: "stack" }),
    empty: "Nothing has been changed at run time.",
  });
  const undo = afterUndo && h("p", { hidden: true }, h("button", { type: "button", onclick: undoLast }, "Undo the last change"));
  const fault = h("p", { role: "alert" });
  const loading = h("p", { class: "faint" }, "Loading.");
  const body = h("div", {}, fault, loading, undo, changes.element);
  // The revision of the entries, so that an undo takes back only what the person has seen.
  let revision = null;

  async function undoLast() {
    const seen = revision;
    const why = await confirmChange({ title: "Undo the last change?", text: "The newest change that can be undone is taken back, of whatever kind it is.", action: "Undo" });
    if (why === null) return;
    try {
      await change("POST", "undo", { why }, String(seen));
      toast("Undone.");
      afterUndo();
    } catch (error) {
      toast(error.status === 412 ? "Something was changed meanwhile. Nothing was done; look at it again." : error.message, "error");
    }
    await load();
  }

  async function load() {
    try {
      // Before the entries: a change between both makes an undo fail.
      const loaded = afterUndo ? (await get("flags", { limit: 1 })).revision : null;
      const all = await get("history");
      revision = loaded;
      const entries = flag ? all.filter((entry) => entry.before.flag?.flag === flag) : all;
      changes.set(entries);
      if (undo) undo.hidden = entries.length === 0;
      fault.className = "";
      fault.textContent = "";
    } catch (error) {
      fault.className = "notice error";
      fault.textContent = error.message;
    }
    loading.remove();
  }

  load();
  return body;
}
