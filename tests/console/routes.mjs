// The routes, and one of them in detail.

import { assert, check, equal, open, picture, withPage } from "./browser.mjs";

await withPage(async (page) => {
  await open(page, "routes");
  await page.getByRole("link", { name: "tools.list" }).waitFor();
  await check(page, "routes");
  await page.getByLabel("Search routes").fill("tools/call");
  await page.getByRole("link", { name: "tools.list" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "tools.call" }).click();
  await page.locator("h1", { hasText: "tools.call" }).waitFor();
  await page.locator(".directions .badge").first().waitFor();
  const text = await page.locator("main").textContent();
  for (const part of ["Latency, old against new", "calls from REST", "not deprecated"]) {
    assert(text.includes(part), `${part} is shown`);
  }
  // All patterns: the call on both sides, then each outcome.
  const patterns = page.locator("section.panel", { has: page.getByRole("heading", { name: "Patterns" }) });
  const partsOf = (pane) => pane.evaluate((one) => [...one.querySelectorAll("dt")].map((name) => `${name.textContent} ${name.nextElementSibling.textContent.replace(/\s+/g, " ")}`));
  const panes = patterns.locator(":scope > div > .panes > .pane");
  equal(await panes.locator("h3").allTextContents(), ["REST", "JSON-RPC"], "the sides");
  equal(await partsOf(panes.nth(0)), ["rest POST /mcp/v1/tools/call", 'body { "name": "{name}", "arguments": "{arguments}", "...": "{...}" }'], "the REST side");
  equal(await partsOf(panes.nth(1)), ["rpc tools/call", 'params { "name": "{name}", "arguments": "{arguments}", "...": "{...}" }'], "the RPC side");
  const outcomes = page.locator(".outcomes > li");
  equal(await outcomes.count(), 7, "the outcomes");
  equal(await partsOf(outcomes.nth(1).locator(".pane").nth(0)), ["status 200", 'body { "content": [{"type": "text", "text": "Tool not found: {tool}"}], "isError": true }'], "the REST side of an outcome");
  equal(await partsOf(outcomes.nth(1).locator(".pane").nth(1)), ["error.code -32602", 'error.message "Tool not found: {tool}"'], "its RPC side");
  const places = () => panes.evaluateAll((both) => both.map((one) => one.getBoundingClientRect()).map(({ x, y }) => [x, y]));
  const [[leftX, leftY], [rightX, rightY]] = await places();
  assert(leftY === rightY && leftX < rightX, "both sides are side by side");
  await page.setViewportSize({ width: 400, height: 860 });
  const [[upperX, upperY], [lowerX, lowerY]] = await places();
  assert(upperX === lowerX && upperY < lowerY, "on a narrow screen one is above the other");
  await page.setViewportSize({ width: 1280, height: 860 });
  await page.getByRole("link", { name: "mobile" }).waitFor();
  await check(page, "route");
  await picture(page, "route", 920);
  // An address of no page leads to the overview, whatever its name is; a name may have a stray percent sign.
  await open(page, "constructor");
  await page.locator("h1", { hasText: "Overview" }).waitFor();
  await open(page, "routes/100%");
  await page.locator("h1", { hasText: "100%" }).waitFor();
});
