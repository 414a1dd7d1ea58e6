// Explain: a pasted curl command, a HAR entry, and the form, with live flips.

import { api, assert, base, check, equal, open, picture, withPage } from "./browser.mjs";

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
  await check(page, "explained");
  await picture(page, "explain", 860);

  // A flip counts at once.
  await api("PUT", "flags/mover", { stage: "passthrough", percent: 100, who: "ben" });
  await page.getByRole("button", { name: "Explain", exact: true }).click();
  await page.locator(".steps .stage.passthrough").waitFor();
  await page.locator(".steps .badge", { hasText: "ben" }).waitFor();

  await paste.fill(JSON.stringify(HAR));
  await read.click();
  await page.locator(".steps .stage.shadow").waitFor();
  assert((await page.getByLabel("Body", { exact: true }).inputValue()).includes("list_tables"), "the body of the entry");

  for (const [text, fault] of [["wget x", "not a curl command"], ["curl 'x", "not closed"], ['{"a":1}', "no HAR request"]]) {
    await paste.fill(text);
    await read.click();
    await page.getByRole("alert").filter({ hasText: fault }).waitFor();
  }
  await check(page, "explain, fault");
});
