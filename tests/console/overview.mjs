// The overview: the shares over time, what needs attention, and the clients by stage, live.

import { api, assert, check, open, picture, withPage } from "./browser.mjs";

await withPage(async (page) => {
  await open(page, "overview");
  // The guard of the demo trips the flag while the page is open.
  const tripped = page.locator(".attention li.error", { hasText: "mobile" });
  await tripped.waitFor({ timeout: 60000 });
  await page.locator(".attention li", { hasText: "differ" }).waitFor();
  // The rewrite goes down for a while, and the candidates of `reports` fail.
  const failed = page.locator(".attention li.warning", { hasText: /candidates? failed/ });
  await failed.first().waitFor({ timeout: 60000 });
  assert(/^#\/differences\?route=tools\./.test(await failed.first().getByRole("link").getAttribute("href")), "the item leads to the differences");
  await page.locator("svg.chart .area").waitFor({ timeout: 60000 });
  assert(/Share on the new side over time/.test(await page.locator("svg.chart").getAttribute("aria-label")), "the chart has words");
  for (const client of ["mobile", "reports"]) await page.locator(".matrix td", { hasText: client }).first().waitFor();
  await check(page, "overview");
  // A change of another person appears without a reload.
  await api("PUT", "kill", { who: "ben", why: "errors at checkout" });
  await page.locator(".killed", { hasText: "errors at checkout" }).waitFor();
  await page.locator(".attention li.error", { hasText: "kill switch" }).waitFor();
  await check(page, "overview, killed");
  await api("DELETE", "kill", { who: "ben" });
  await page.locator(".killed").waitFor({ state: "detached" });
  // A move is seen in the chart.
  await api("PUT", "flags/reports", { stage: "translate", percent: 100, who: "anna", why: "ticket 7" });
  await page.waitForFunction(() => document.querySelectorAll(".chart .area")[0].getAttribute("d").split("L").length > 6, undefined, { timeout: 120000 });
  await picture(page, "overview", 900);
  // The keyboard reaches the content and the links of the attention list.
  await page.locator("body").press("Tab");
  assert(await page.locator(".skip").evaluate((link) => link === document.activeElement), "the first stop is the skip link");
  await tripped.locator("a").press("Enter");
  await page.locator("h1", { hasText: "Flags" }).waitFor();
  await page.locator("article", { hasText: "mobile" }).waitFor();
});
