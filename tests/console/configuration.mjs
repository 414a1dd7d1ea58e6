// The configuration: a reload with problems shows them by file and line, and the old configuration stays in force.

import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assert, base, check, equal, open, picture, withPage } from "./browser.mjs";

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

  const all = await page.locator(".operation").count();
  await page.getByText(`Operations: ${all}`, { exact: true }).waitFor();
  await page.getByLabel("Filter").fill("Show one flag ");
  await page.getByText(`Operations that match: 1 of ${all}`, { exact: true }).waitFor();
  equal(await page.locator(".operation:visible").count(), 1, "the operations that match");
  const operation = page.locator(".operation:visible");
  await operation.locator("summary").first().click();
  const name = operation.getByLabel("name");
  await name.fill("mover");
  await operation.getByRole("button", { name: "Send" }).click();
  const response = operation.getByRole("status");
  await response.filter({ hasText: /^200 / }).waitFor();
  assert((await operation.locator("form pre").textContent()).startsWith("{"), "the body of the response");
  await check(page, "API with a response");
  await name.fill("größe/1?{name}");
  await operation.getByRole("button", { name: "Send" }).click();
  await response.filter({ hasText: /^404 / }).waitFor();
  await operation.getByText("GET /api/v1/flags/gr%C3%B6%C3%9Fe%2F1%3F%7Bname%7D", { exact: true }).waitFor();
});
