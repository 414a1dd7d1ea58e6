// The differences: a mismatch with both responses side by side, its ignore rule, and a failed candidate.

import { api, assert, check, equal, open, picture, withPage } from "./browser.mjs";

await withPage(async (page) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await open(page, "differences");
  const mismatch = page.getByRole("button", { name: "/body/tools/*/description" });
  // The list is read when the page opens; the demo differs after some calls.
  while (!(await mismatch.isVisible())) {
    await page.waitForTimeout(500);
    await page.reload();
    await page.locator(".list-body > *").first().waitFor();
  }
  await mismatch.click();
  const panes = page.locator(".detail .pane");
  await panes.first().waitFor();
  equal(await panes.count(), 2, "two responses");
  const [control, candidate] = await panes.locator("mark").allTextContents();
  assert(/description/.test(control) && /description/.test(candidate) && control !== candidate, "the differing place is marked");
  await check(page, "differences");
  await picture(page, "differences", 900);
  await page.getByRole("button", { name: "Copy the ignore rule" }).click();
  await page.getByText("Copied.").waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert(copied.includes('compare = { ignore = ["/body/tools/*/description"] }') && copied.includes('name = "tools.list"'), copied);

  await page.waitForFunction(async () => {
    const response = await fetch("/api/v1/differences");
    return (await response.json()).items.some((item) => item.field === null);
  }, undefined, { timeout: 60000 });
  await page.reload();
  await page.getByRole("button", { name: "failed candidates" }).click();
  await page.locator(".detail .pane mark", { hasText: "status 502" }).waitFor();
  await check(page, "failed candidate");
  await page.getByRole("button", { name: "Delete the route's records" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("Deleted.").waitFor();
  assert((await api("GET", "mismatches")).routes.every((route) => route.failed.count < 40), "the records are deleted");
});
