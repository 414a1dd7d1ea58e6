// The clients: who they are, where their calls are served, and whether the new side fails them more often.

import { get } from "../api.js";
import { h, row, table } from "../dom.js";
import { ago, compact, count, dateTime, share } from "../format.js";
import { pagedList } from "../list.js";
import { stageBar } from "../sides.js";

const LIMIT = 50;
const EVERY_MS = 3000;

const COLUMNS = [
  { title: "Client" }, { title: "Era and version" }, { title: "Last seen" }, { title: "Stages" },
  { title: "Moved", class: "number" }, { title: "Errors old", class: "number" }, { title: "Errors new", class: "number" },
];

function identity(client) {
  const proof = client.proof === null ? "calls that match no client" : `${client.proof} by ${client.source}`;
  return [h("strong", {}, client.name), h("span", { class: "sub" }, proof)];
}

function era(one) {
  const programs = one.programs.map((program) => [program.name, program.version].filter(Boolean).join(" ")).join(", ");
  return h("span", { class: "line" }, `${one.era} ${one.revision}`, programs && h("span", { class: "sub" }, programs));
}

function errors(counts) {
  if (counts.calls === 0) return h("span", { class: "faint" }, "–");
  return h("span", { title: `${count(counts.errors)} of ${count(counts.calls)} calls` }, share(counts.errors, counts.calls));
}

function worse(client) {
  const rate = (counts) => (counts.calls === 0 ? 0 : counts.errors / counts.calls);
  return client.new.errors > 0 && client.old.calls > 0 && rate(client.new) > 2 * rate(client.old);
}

function clientRow(client) {
  const { old, new: moved } = client.calls;
  return row(COLUMNS, [
    identity(client),
    client.eras.length > 0 ? client.eras.map(era) : h("span", { class: "faint" }, "–"),
    h("time", { datetime: client.last, title: dateTime(client.last) }, ago(client.last)),
    stageBar(client.stages),
    h("span", { title: `${count(moved)} of ${count(old + moved)} calls` }, share(moved, old + moved), h("span", { class: "sub" }, `of ${compact(old + moved)}`)),
    errors(client.old),
    [errors(client.new), worse(client) && h("span", { class: "badge warning" }, "more than old")],
  ]);
}

export function clientsPage(address) {
  const sort = h("select", { "aria-label": "Order" }, h("option", { value: "calls" }, "most calls first"), h("option", { value: "name" }, "as configured"));
  const only = address.query.get("search");
  const list = pagedList({
    noun: "clients", limit: LIMIT, controls: [sort], first: only,
    load: (query) => get("clients", { ...query, sort: sort.value }),
    show: (items) => table("Clients", COLUMNS, items.map(clientRow), { class: "stack" }),
    empty: "No client is configured. Calls of unknown clients appear as “other”.",
  });
  sort.addEventListener("change", list.refresh);
  const element = h("div", {}, h("h1", {}, "Clients"),
    h("p", { class: "faint" }, "Calls and shares count all replicas since counting began; stages and errors count this process since its start."), list.element);
  let last = Date.now();
  return {
    title: "Clients", element, start: list.refresh, changed: list.refreshIfIdle,
    show() {
      if (Date.now() - last < EVERY_MS) return;
      last = Date.now();
      list.refreshIfIdle();
    },
  };
}
