// The time in which the API answers a page, with ten thousand routes and clients and a thousand flags: while the proxy serves
// calls, and when it is idle.

import { Agent, request } from "node:http";

const { CONSOLE_URL: base, CONSOLE_CALLS: proxy, CONSOLE_BUILD: build } = process.env;
// Debug builds are ten times slower than release builds, for which the limit is.
const PAGE_MS = 50 * (build === "release" ? 1 : 10);
// Clients without a pause keep two cores busy, so that a page waits for its turn.
const SERVING = 4;
const TIMES = 20;
const CLIENTS = 4;
const CHANGES = 20;
const FLAGS = 1000;
const ROUTES = 10000;
// As many templates as differ in more than one word: words at one place would become one template.
const DEPTH = 24;
const METHODS = ["GET", "PUT", "PATCH", "DELETE"];
const ENDS = ["a", "b", "c", "d", "e"];
const UNROUTED = DEPTH * METHODS.length * ENDS.length;

const PAGES = [
  "flags?limit=50", "flags?limit=50&offset=950", "flags/wave-05000/preview?stage=translate&percent=50", "history",
  "clients?limit=50", "clients?limit=50&sort=calls", "clients?limit=50&offset=9950&search=app",
  "routes?limit=50&offset=9950", "routes?search=call09", "routes/area050.call05000", "routes/area050.call05000/verdict",
  "performance?limit=50", "performance?limit=50&offset=950",
  "differences?limit=50", "differences?limit=50&offset=500", "mismatches?route=area050.*",
  "usage?route=area050.call05000", "usage?route=area050.*", "unrouted", "recording", "overview", "status",
];

// The admin listener closes a connection after a minute.
const agents = { [base]: new Agent(), [proxy]: new Agent({ keepAlive: true }) };

function send(address, method, path, headers = {}, body = "") {
  return new Promise((resolve, reject) => {
    const sent = request(`${address}${path}`, { agent: agents[address], method, headers }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () => resolve({ status: response.statusCode, text: Buffer.concat(parts).toString() }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

async function api(method, path, body) {
  const { status, text } = await send(base, method, `/api/v1/${path}`, { "content-type": "application/json" }, body && JSON.stringify(body));
  if (status !== 200) throw new Error(`${method} ${path}: ${status} ${text}`);
  return JSON.parse(text);
}

function call(number) {
  const index = (number % FLAGS) * (ROUTES / FLAGS);
  const [area, route] = [String(Math.floor(index / 100)).padStart(3, "0"), String(index).padStart(5, "0")];
  return send(proxy, "GET", `/area${area}/call${route}/${number}`, { "x-client-id": `app-${route}` });
}

function unroutedCall(number) {
  const [depth, kind] = [number % DEPTH, Math.floor(number / DEPTH)];
  const path = `${"/x".repeat(depth)}${"/y".repeat(DEPTH - 1 - depth)}/${ENDS[kind % ENDS.length]}`;
  return send(proxy, METHODS[Math.floor(kind / ENDS.length)], path);
}

// Calls `work` with each number below a limit, from several clients at once.
async function each(limit, work) {
  let next = 0;
  const client = async () => {
    while (next < limit) await work(next++);
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
}

async function measure(when, limit) {
  let slow = 0;
  for (const path of PAGES) {
    const all = [];
    let size = 0;
    for (let turn = 0; turn < TIMES; turn += 1) {
      const began = performance.now();
      const { status, text } = await send(base, "GET", `/api/v1/${path}`);
      all.push(performance.now() - began);
      if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
      size = text.length;
    }
    const took = all.sort((one, other) => one - other)[TIMES / 2];
    console.log(`${when}: ${path}: ${took.toFixed(1)} ms, ${size} bytes`);
    slow += took < limit ? 0 : 1;
  }
  if (slow > 0) throw new Error(`${when}: ${slow} pages take more than ${limit} ms`);
}

await each(2 * FLAGS, call);
await each(UNROUTED, unroutedCall);
for (let change = 0; change < CHANGES; change += 1) {
  const stage = ["shadow", "verify"][change % 2];
  await api("PUT", "flags/wave-05000", { stage, percent: 100, who: "anna", why: "ticket 7" });
}
await api("PUT", "recording", { seconds: 600, who: "anna" });
// Candidates may end after their calls.
let found;
for (let turn = 0; turn < 300; turn += 1) {
  found = await api("GET", "differences?limit=1");
  if (found.total >= 500) break;
  await new Promise((resolve) => setTimeout(resolve, 100));
}
const unrouted = await api("GET", "unrouted");
const history = await api("GET", "history");
const counts = [found.total, unrouted.paths.length, history.length];
if (counts[0] < 500 || counts[1] !== UNROUTED || counts[2] !== CHANGES) throw new Error(`too little to show: ${counts}`);
await measure("idle", PAGE_MS);
let serves = true;
let served = 0;
const traffic = each(Infinity, async (number) => {
  if (!serves) throw new Error("the end");
  const { status } = await call(number);
  if (status !== 200) throw new Error(`a call: ${status}`);
  served += 1;
});
const ended = traffic.catch((error) => error.message);
try {
  await measure("serving", PAGE_MS * SERVING);
} finally {
  serves = false;
}
const end = await ended;
if (end !== "the end" || served < 1000) throw new Error(`${served} calls, ${end}`);
agents[proxy].destroy();
