// The configuration: a reload with problems shows them by file and line, and the old configuration stays in force.

import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assert, base, check, open, picture, withPage } from "./browser.mjs";

const file = join(process.env.CONSOLE_FOLDER, "dualgauge.toml");

await withPage(async (page) => {
  await open(page, "configuration");
  await page.getByText("The files in force have no problems.").waitFor();
  await check(page, "configuration");
  await page.setViewportSize({ width: 400, height: 860 });
  await page.reload();
  const place = await page.locator(".pages a[aria-current]").boundingBox();
  assert(place.x >= 0 && place.x + place.width <= 400, `the link of the page is at ${place.x} px`);
  await page.setViewportSize({ width: 1280, height: 860 });
  const text = readFileSync(file, "utf8");
  appendFileSync(file, "\n[limits]\nbach = 7\n");
  await page.getByRole("button", { name: "Reload the files" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Reload" }).click();
  const problem = page.locator(".problems li");
  await problem.waitFor();
  const told = await problem.textContent();
  assert(told.includes("bach") && told.includes("batch") && told.includes(`line ${text.split("\n").length + 2}`), told);
  await check(page, "configuration with problems");
  await picture(page, "configuration", 860);
  writeFileSync(file, text);
  await page.getByText("The files in force have no problems.").waitFor();
  await page.getByRole("link", { name: "API" }).click();
  await page.locator(".operation").first().waitFor();
  assert(page.url() === `${base}/api/v1/docs`, "the page of the API");
  assert((await page.locator(".operation").count()) > 20, "the operations of the API");
  await page.locator(".operation summary", { hasText: "/api/v1/kill" }).first().click();
  await check(page, "API");
});
