// Ten thousand routes and clients, and a thousand flags: first rows within two seconds, and never more than a page of them.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assert, base, check, equal, open, withPage } from "./browser.mjs";

const { CONSOLE_CALLS: proxy, CONSOLE_FOLDER: folder } = process.env;
const file = join(folder, "dualgauge.toml");

// Debug builds are ten times slower than release builds, for which the limits are.
const SLOWER = process.env.CONSOLE_BUILD === "release" ? 1 : 10;
const FIRST_ROWS_MS = 2000 * SLOWER;

await withPage(async (page) => {
  for (const [hash, noun, total] of [["flags", "flags", "1,000"], ["clients", "clients", "10,000"], ["routes", "routes", "10,000"]]) {
    await page.goto("about:blank");
    const began = performance.now();
    await page.goto(`${base}/#/${hash}`);
    await page.locator("main article, main tbody tr").first().waitFor();
    const took = performance.now() - began;
    assert(took < FIRST_ROWS_MS, `first rows of ${noun} after ${Math.round(took)} ms`);
    await page.getByText(`of ${total} ${noun}`).waitFor();
    await check(page, noun);
    await page.getByRole("button", { name: "Next" }).click();
    await page.locator(".pager", { hasText: /(26|51)–/ }).waitFor();
    console.log(`${noun}: first rows after ${Math.round(took)} ms`);
  }
  await page.getByLabel("Search routes").fill("call09999");
  await page.getByRole("link", { name: "area099.call09999" }).click();
  await page.locator("h1", { hasText: "area099.call09999" }).waitFor();
  await page.locator(".directions .badge").first().waitFor({ timeout: 60000 });
  // A route with many callers, outcomes and examples shows pages of each.
  for (let client = 0; client < 120; client += 1) {
    await (await fetch(`${proxy}/area099/call09999/1`, { headers: { "x-client-id": `app-${String(client).padStart(5, "0")}` } })).text();
  }
  for (const noun of ["outcomes", "examples", "callers"]) await page.locator(".pager", { hasText: new RegExp(`of 1\\d\\d ${noun}`) }).waitFor();
  await page.getByLabel("Search outcomes").fill("e149");
  await page.locator(".outcomes > li", { hasText: "e149" }).waitFor();
  await page.locator(".pager", { hasText: "1–1 of 1 outcomes" }).waitFor();
  await page.getByLabel("Search outcomes").fill("");
  await page.locator(".pager", { hasText: "of 150 outcomes" }).waitFor();
  for (const direction of await page.locator(".directions summary").all()) await direction.click();
  await check(page, "route");

  // An explanation with many flags and replies.
  await open(page, "explain");
  await page.getByLabel("Path and query").fill("/area099/call09999/1");
  await page.getByLabel("Headers").fill("x-client-id: app-00001\nx-device: d1");
  await page.getByRole("button", { name: "Explain", exact: true }).click();
  await page.locator(".pager", { hasText: /of \d+ flags/ }).waitFor();
  await check(page, "explain");

  // Many upstreams, files and problems.
  await open(page, "configuration");
  for (const noun of ["upstreams", "files"]) await page.locator(".pager", { hasText: new RegExp(`of 15\\d ${noun}`) }).waitFor();
  const text = readFileSync(file, "utf8");
  writeFileSync(file, `${text}\n[limits]\n${Array.from({ length: 150 }, (_, at) => `bach${at} = 7\n`).join("")}`);
  await page.locator(".pager", { hasText: "1–25 of 150 problems" }).waitFor({ timeout: 60000 });
  await check(page, "configuration with problems");
  await page.locator("section.panel", { hasText: "Problems of the last reload" }).getByRole("button", { name: "Next" }).click();
  await page.locator(".problems li", { hasText: "bach25" }).waitFor();
  writeFileSync(file, text);
  await page.getByText("The files in force have no problems.").waitFor({ timeout: 60000 });
  await open(page, "overview");
  await check(page, "overview");
  equal((await (await fetch(`${base}/api/v1/routes?limit=100`)).json()).items.length, 100, "a page");
});
