// A HAR file of a browser: Chromium calls the REST side of the proxy, and an entry of the file is pasted into Explain. `tests/console.rs`
// replays the file, and learns from it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { check, equal, open, recordHar, withPage } from "./browser.mjs";

const file = join(process.env.CONSOLE_FOLDER, "browser.har");

await recordHar(file, `${process.env.CONSOLE_CALLS}/orders/7`, async () => {
  const json = { "content-type": "application/json", authorization: "Bearer planted" };
  const calls = [["/mcp/v1/tools/list", { headers: json, body: "{}" }]];
  for (const call of [{ name: "list_tables", arguments: {} }, { name: "query_records", arguments: { table_name: "é", big: 7 } }]) {
    calls.push(["/mcp/v1/tools/call", { headers: json, body: JSON.stringify(call) }]);
  }
  // A form, a file, and bytes that are no text.
  const form = new FormData();
  form.append("file", new Blob([new Uint8Array([0, 255, 254])]), "bytes.bin");
  for (const body of [new URLSearchParams({ name: "a b" }), form, new Uint8Array([0, 255, 254])]) calls.push(["/mcp/v1/tools/call", { body }]);
  for (const [path, init] of calls) await (await fetch(path, { method: "POST", ...init })).text();
  await (await fetch("/orders/8?full=1")).text();
});

const { log } = JSON.parse(readFileSync(file, "utf8"));
equal(log.entries.length, 8, "the entries");
const entryOf = (part) => log.entries.find((entry) => entry.request.method === "POST" && (entry.request.postData?.text || "").includes(part));

await withPage(async (page) => {
  await open(page, "explain");
  for (const [entry, body] of [[entryOf("list_tables"), '{"name":"list_tables","arguments":{}}'], [entryOf("é"), '{"name":"query_records","arguments":{"table_name":"é","big":7}}']]) {
    await page.getByLabel("Paste a curl command or a HAR entry").fill(JSON.stringify(entry, null, 2));
    await page.getByRole("button", { name: "Read and explain" }).click();
    await page.waitForFunction((text) => [...document.querySelectorAll("textarea")].some((area) => area.value === text), body);
    await page.locator(".steps").getByRole("link", { name: "tools.call" }).waitFor();
    equal(await page.getByLabel("Path and query").inputValue(), "/mcp/v1/tools/call", "the path of the entry");
  }
  // A whole file stands for its first entry.
  await page.getByLabel("Paste a curl command or a HAR entry").fill(JSON.stringify({ log }));
  await page.getByRole("button", { name: "Read and explain" }).click();
  await page.getByRole("heading", { name: "GET /orders/7" }).waitFor();
  await check(page, "an explained HAR entry");
});
