// The differences: a mismatch with both responses side by side, its ignore rule, and a failed candidate.

import { api, assert, check, equal, open, picture, withPage } from "./browser.mjs";

// Returns the times of all recorded samples of a route.
async function sampleTimes(name) {
  const { routes } = await api("GET", "mismatches");
  const route = routes.find((one) => one.route === name);
  return route ? [route.failed, ...route.fields].flatMap((one) => one.samples.map((sample) => sample.at)) : [];
}

// Waits until the API lists a difference; the page reads the list only when it opens.
async function listed(page, wanted) {
  await page.waitForFunction(async (field) => {
    const response = await fetch("/api/v1/differences");
    return (await response.json()).items.some((item) => item.field === field);
  }, wanted, { timeout: 60000 });
  await page.reload();
}

await withPage(async (page) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await open(page, "differences");
  const mismatch = page.getByRole("button", { name: "/body/tools/*/description" });
  // The demo differs after some calls.
  await listed(page, "/body/tools/*/description");
  await mismatch.click();
  const panes = page.locator(".detail .pane");
  await panes.first().waitFor();
  equal(await panes.count(), 2, "two responses");
  const [control, candidate] = await panes.locator("mark").allTextContents();
  assert(/description/.test(control) && /description/.test(candidate) && control !== candidate, "the differing place is marked");
  await page.getByRole("status").filter({ hasText: "Shown: /body/tools/*/description of tools.list" }).waitFor();
  await check(page, "differences");
  await picture(page, "differences", 900);
  await page.getByRole("button", { name: "Copy the ignore rule" }).click();
  await page.getByText("Copied.").waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert(copied.includes('compare = { ignore = ["/body/tools/*/description"] }') && copied.includes('name = "tools.list"'), copied);

  await listed(page, null);
  await page.getByRole("button", { name: "failed candidates" }).click();
  await page.locator(".detail .pane mark", { hasText: "status 502" }).waitFor();
  await check(page, "failed candidate");
  const route = await page.locator(".detail h2 a").textContent();
  const before = await sampleTimes(route);
  assert(before.length > 0, "samples before the deletion");
  await page.getByRole("button", { name: "Delete the route's records" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("Deleted.").waitFor();
  equal(await page.getByText(/^Shown: /).count(), 0, "the status after the deletion");
  const left = (await sampleTimes(route)).filter((at) => before.includes(at));
  equal(left, [], "the samples from before the deletion");
});
