// Readiness: what keeps the process from being ready is on the overview, and leads to the configuration page.

import { check, open, withPage } from "./browser.mjs";

await withPage(async (page) => {
  await open(page, "overview");
  const error = page.locator(".attention li.error", { hasText: "no address of the upstream `old` passes its health checks" });
  await error.waitFor();
  await page.locator(".attention li.warning", { hasText: "the upstream `new` has no link" }).waitFor();
  await check(page, "overview, not ready");
  await error.getByRole("link", { name: "Readiness" }).click();
  await page.locator("h1", { hasText: "Configuration" }).waitFor();
  await page.locator(".notice.error", { hasText: "the upstream `old`" }).waitFor();
  await page.locator(".notice.warning", { hasText: "the upstream `new` has no link" }).waitFor();
  await check(page, "configuration, not ready");
});
