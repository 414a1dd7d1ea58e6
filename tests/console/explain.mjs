// Explain: a pasted curl command, a HAR entry, and the form, with live flips.

import { api, assert, base, check, equal, holdFirst, open, picture, withPage } from "./browser.mjs";

const CURL = `curl '${base}/mcp/v1/tools/list?x=1' -X POST \\
  -H 'x-client-id: mover' -H "accept: application/json"`;
const HAR = { request: { method: "POST", url: `${base}/mcp/v1/tools/call`, headers: [{ name: ":path", value: "/" }, { name: "x-client-id", value: "reports" }, { name: "content-type", value: "application/json" }], postData: { text: '{"name":"list_tables","arguments":{}}' } } };

await withPage(async (page) => {
  await open(page, "explain");
  await check(page, "explain, empty");
  const paste = page.getByLabel("Paste a curl command or a HAR entry");
  const read = page.getByRole("button", { name: "Read and explain" });
  await paste.fill(CURL.replace("?x=1", ""));
  await read.click();
  await page.locator(".steps .stage.translate").waitFor();
  equal(await page.getByLabel("Path and query").inputValue(), "/mcp/v1/tools/list", "the path of the command");
  assert((await page.locator("main").textContent()).includes("flag mover"), "the reason of the decision");
  await page.getByRole("status").filter({ hasText: "Explained: POST /mcp/v1/tools/list" }).waitFor({ state: "attached" });
  await check(page, "explained");
  await picture(page, "explain", 860);

  // JavaScript would round the number.
  await paste.fill(`curl -H 'x-client-id: mover' --json '{"name":"x","arguments":{"id":9007199254740993}}' ${base}/mcp/v1/tools/call`);
  await read.click();
  await page.locator(".steps tr", { hasText: "arguments" }).getByText('{"id":9007199254740993}').waitFor();
  await page.locator(".steps pre", { hasText: /"id": ?9007199254740993/ }).waitFor();

  // A flip counts at once.
  await api("PUT", "flags/mover", { stage: "passthrough", percent: 100, who: "ben" });
  await page.getByRole("button", { name: "Explain", exact: true }).click();
  await page.locator(".steps .stage.passthrough").waitFor();
  await page.locator(".steps .badge", { hasText: "ben" }).waitFor();

  await paste.fill(JSON.stringify(HAR));
  await read.click();
  await page.locator(".steps .stage.shadow").waitFor();
  assert((await page.getByLabel("Body", { exact: true }).inputValue()).includes("list_tables"), "the body of the entry");

  // Credentials and encoded data are part of the call; other bodies of a HAR entry are read as well.
  const body = page.getByLabel("Body", { exact: true });
  await paste.fill(`curl -sSL -u 'ann:é' --data-urlencode 'a=b c' ${base}/mcp/v1/tools/call`);
  await read.click();
  await page.waitForFunction((label) => [...document.querySelectorAll("textarea")].some((area) => area.value === label), "a=b%20c");
  assert((await page.locator("textarea").evaluateAll((areas) => areas.map((area) => area.value))).join("\n").includes("Basic YW5uOsOp"), "the credentials of the command");
  const params = { request: { ...HAR.request, postData: { params: [{ name: "a", value: "b c" }] } } };
  const encoded = { request: { ...HAR.request, postData: { text: "w6k=", encoding: "base64" } } };
  for (const [entry, text] of [[params, "a=b+c"], [encoded, "é"]]) {
    await paste.fill(JSON.stringify(entry));
    await read.click();
    await page.waitForFunction((label) => [...document.querySelectorAll("textarea")].some((area) => area.value === label), text);
    equal(await body.inputValue(), text, "the body of the entry");
  }

  for (const [text, fault] of [["wget x", "not a curl command"], ["curl 'x", "not closed"], ["curl -F a=b /x", "-F is not supported"], ["curl -d @file /x", "reads a file"], ['{"a":1}', "no HAR request"]]) {
    await paste.fill(text);
    await read.click();
    await page.getByRole("alert").filter({ hasText: fault }).waitFor();
  }
  await check(page, "explain, fault");

  // The first of two requests gets its response last, which is dropped.
  const first = await holdFirst(page, "**/api/v1/explain");
  for (const target of ["/mcp/v1/first", "/mcp/v1/second"]) {
    await page.getByLabel("Path and query").fill(target);
    await page.getByRole("button", { name: "Explain", exact: true }).click();
    if (target.endsWith("first")) await first.arrived;
  }
  const shown = page.getByRole("status").filter({ hasText: "Explained: " });
  await shown.filter({ hasText: "/mcp/v1/second" }).waitFor({ state: "attached" });
  await first.release();
  assert((await shown.textContent()).includes("/mcp/v1/second"), "the response that is shown");
});
