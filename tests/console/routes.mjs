// The routes, and one of them in detail.

import { assert, check, open, picture, withPage } from "./browser.mjs";

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
  for (const part of ["POST /mcp/v1/tools/call", "tools/call", "Latency, old against new", "calls from REST", "not deprecated"]) {
    assert(text.includes(part), `${part} is shown`);
  }
  await page.getByRole("link", { name: "mobile" }).waitFor();
  await check(page, "route");
  await picture(page, "route", 920);
  // An address of no page leads to the overview, whatever its name is; a name may have a stray percent sign.
  await open(page, "constructor");
  await page.locator("h1", { hasText: "Overview" }).waitFor();
  await open(page, "routes/100%");
  await page.locator("h1", { hasText: "100%" }).waitFor();
});
