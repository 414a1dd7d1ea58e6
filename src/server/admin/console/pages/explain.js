// Explain: how the configuration in force, with all changes, would handle a call. Nothing is sent to a server.

import { request } from "../api.js";
import { field, h, row, table } from "../dom.js";
import { parseCurl } from "../curl.js";
import { parseHar } from "../har.js";
import { parseExactly, pretty } from "../json.js";
import { localList } from "../list.js";
import { stageBadge } from "../sides.js";

const MOST = 20;
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

// Reads lines of `name: value`.
function headersOf(text) {
  // Without a prototype, so that a header may have any name.
  const headers = Object.create(null);
  for (const line of text.split("\n").filter((one) => one.trim() !== "")) {
    const colon = line.indexOf(":");
    if (colon < 1) throw new Error(`“${line}” is no header; write \`name: value\`.`);
    const name = line.slice(0, colon).trim();
    const value = line.slice(colon + 1).trim();
    headers[name] = name in headers ? [headers[name], value].flat() : value;
  }
  return headers;
}

export function parsePasted(text) {
  const trimmed = text.trim();
  return trimmed.startsWith("{") ? parseHar(trimmed) : parseCurl(trimmed);
}

function step(title, ...content) {
  return h("li", {}, h("h3", {}, title), content);
}

function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function code(text, label) {
  return h("pre", { tabindex: 0, role: "region", "aria-label": label }, text);
}

// A list of what one explanation has.
function listOf(items, options) {
  const list = localList({ limit: MOST, ...options });
  list.set(items);
  return list.element;
}

function decision(decided) {
  if (!decided) return null;
  return step("Decision",
    h("p", {}, stageBadge(decided.stage), " because of ", h("strong", {}, decided.why), decided.changed && h("span", { class: "badge" }, decided.changed)),
    facts([["Candidate", decided.candidate]]),
    decided.passed_over?.length > 0 && h("details", { open: true }, h("summary", {}, "Flags that do not decide"), listOf(decided.passed_over, {
      noun: "flags", text: (one) => `${one.flag} ${one.why}`,
      show: (flags) => h("ul", {}, flags.map((one) => h("li", {}, h("code", {}, one.flag), ` (${one.percent} %): ${one.why}`, one.bucket !== undefined && `, bucket ${one.bucket}`, one.changed && `; ${one.changed}`))),
    })));
}

function holes(found) {
  if (!found || found.length === 0) return null;
  const columns = [{ title: "Hole" }, { title: "Type" }, { title: "Value" }];
  const holeRow = (hole) => row(columns, [h("code", {}, hole.name), hole.type, h("code", {}, hole.value === null ? "absent" : JSON.stringify(hole.value))]);
  return step("Values that the pattern reads", listOf(found, { noun: "holes", text: (hole) => hole.name, show: (some) => table("Values of holes", columns, some.map(holeRow)) }));
}

function sent(call) {
  if (!call) return null;
  const headers = call.headers.map((header) => `${header.name}: ${header.value}`);
  const head = [`${call.method || ""} ${call.target || ""}`.trim(), ...headers].filter(Boolean).join("\n");
  return step("Request to the upstream", facts([["Upstream", call.upstream], ["Address", call.authority], ["Note", call.note]]), head && code(head, "Request"), call.body && code(pretty(typeof call.body === "string" ? call.body : JSON.stringify(call.body)), "Body"));
}

function refusal(refused) {
  if (!refused) return null;
  return step("Refused", h("p", { class: "notice error" }, refused.message), facts([["Status", refused.status], ["Code", refused.code], ["Reason", h("code", {}, refused.reason)], ["Blame", refused.blame]]));
}

function outcomes(rows) {
  if (!rows || rows.length === 0) return null;
  const columns = [{ title: "REST" }, { title: "RPC" }];
  return step("Replies that the route maps, in order", listOf(rows, {
    noun: "replies", text: (one) => `${one.rest} ${one.rpc}`,
    show: (some) => table("Replies", columns, some.map((one) => row(columns, [h("code", {}, one.rest), h("code", {}, one.rpc)]))),
  }));
}

// Members that no step above shows are shown as they are, so that nothing is hidden.
const SHOWN = ["side", "request", "message", "client", "proof", "route", "decision", "holes", "sends", "dropped", "outcomes", "refused"];

function others(explanation) {
  const rest = Object.fromEntries(Object.entries(explanation).filter(([name, value]) => !SHOWN.includes(name) && value !== null && !(Array.isArray(value) && value.length === 0)));
  return Object.keys(rest).length > 0 && h("details", {}, h("summary", {}, "Further details"), code(JSON.stringify(rest, null, 2), "Further details"));
}

function explained(one) {
  const route = one.route ? [h("a", { href: `#/routes/${encodeURIComponent(one.route.name)}` }, one.route.name), h("br"), h("code", {}, one.route.rest), " ⇄ ", h("code", {}, one.route.rpc)] : "no route: the call passes through";
  return h("section", { class: "panel" }, h("h2", {}, one.message || one.request),
    h("ol", { class: "steps" },
      step("Client", h("p", {}, h("strong", {}, one.client), ` (${one.proof})`)), step("Route", h("p", {}, route)),
      decision(one.decision), holes(one.holes), refusal(one.refused), sent(one.sends),
      outcomes(one.outcomes),
      one.dropped?.length > 0 && step("Dropped in translation", listOf(one.dropped, { noun: "names", text: String, show: (names) => h("ul", {}, names.map((name) => h("li", {}, h("code", {}, name)))) }))),
    others(one));
}

export function explainPage() {
  const pasted = h("textarea", { rows: 3, spellcheck: "false", placeholder: "curl 'http://…' -H 'x-client-id: …'" });
  const method = h("select", {}, METHODS.map((name) => h("option", {}, name)));
  const target = h("input", { value: "/", spellcheck: "false", autocomplete: "off", required: true });
  const headers = h("textarea", { rows: 3, spellcheck: "false" });
  const body = h("textarea", { rows: 4, spellcheck: "false" });
  const from = h("input", { spellcheck: "false", autocomplete: "off" });
  const fault = h("p", { role: "alert" });
  // The lists in the result announce their own changes, so the result is no live region.
  const status = h("p", { class: "visually-hidden", role: "status" });
  const result = h("div");
  // The number of the last request: the response to an earlier one is dropped.
  let last = 0;

  function fail(error) {
    result.replaceChildren();
    fault.className = "notice error";
    fault.textContent = error.message;
  }

  function clear() {
    fault.className = "";
    fault.textContent = "";
    status.textContent = "";
  }

  function fillIn() {
    last += 1;
    clear();
    try {
      const call = parsePasted(pasted.value);
      if (!METHODS.includes(call.method)) method.append(h("option", {}, call.method));
      method.value = call.method;
      target.value = call.target;
      headers.value = call.headers.map(([name, value]) => `${name}: ${value}`).join("\n");
      body.value = call.body;
      explain();
    } catch (error) {
      fail(error);
    }
  }

  async function explain(event) {
    event?.preventDefault();
    const number = last += 1;
    clear();
    try {
      const call = { method: method.value, target: target.value, headers: headersOf(headers.value) };
      if (body.value) call.body = body.value;
      if (from.value.trim()) call.from = from.value.trim();
      const response = await request("/api/v1/explain", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(call) });
      const text = await response.text();
      if (number !== last) return;
      const [{ explanations }] = parseExactly(text);
      const [first] = explanations;
      status.textContent = explanations.length === 1 ? `Explained: ${first.message || first.request}` : `${explanations.length} messages explained`;
      // One message of a batch at a time.
      result.replaceChildren(listOf(explanations, { noun: "messages", limit: 1, text: (one) => one.message || one.request, show: (messages) => messages.map(explained) }));
    } catch (error) {
      if (number === last) fail(error);
    }
  }

  const form = h("form", { class: "panel", onsubmit: explain },
    field("Paste a curl command or a HAR entry", pasted), h("p", { class: "buttons" }, h("button", { type: "button", onclick: fillIn }, "Read and explain")),
    h("div", { class: "call-line" }, field("Method", method), field("Path and query", target)),
    field("Headers", headers, "One per line: name: value. Credentials are not shown in the result."), field("Body", body), field("Client address", from, "Optional; rules by address match only with it."),
    h("p", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Explain")), fault);
  return { title: "Explain", element: h("div", {}, h("h1", {}, "Explain a call"), h("p", { class: "faint" }, "The configuration in force, with all changes at run time. Nothing is sent to a server."), h("div", { class: "explain" }, form, result), status) };
}
