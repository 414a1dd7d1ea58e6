// The clients: found by name, with their stages, shares and errors.

import { check, equal, open, picture, withPage } from "./browser.mjs";

await withPage(async (page) => {
  await open(page, "clients");
  const row = (name) => page.getByRole("row", { name: new RegExp(`^${name} `) });
  await row("mobile").waitFor();
  await page.waitForFunction(() => /translate \d+ %/.test(document.querySelector("main table").textContent), undefined, { timeout: 60000 });
  await check(page, "clients");
  await picture(page, "clients", 560);
  await page.getByLabel("Search clients").fill("REPO");
  await row("mobile").waitFor({ state: "detached" });
  equal(await page.locator("tbody tr").count(), 1, "found clients");
  await page.getByLabel("Search clients").fill("nobody");
  await page.getByText("No clients contain “nobody”.").waitFor();
  await check(page, "no clients");
});
