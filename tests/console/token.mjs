// The token: asked for once, kept in the tab only, and sent in a header.

import { assert, base, check, equal, withPage } from "./browser.mjs";

await withPage(async (page) => {
  const headers = new Set();
  page.on("request", async (request) => {
    if (request.url().includes("/api/v1/")) headers.add(await request.headerValue("authorization"));
    equal(await request.headerValue("cookie"), null, "a cookie");
  });
  await page.goto(`${base}/`);
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await check(page, "token");
  await dialog.getByLabel("Token").fill("wrong");
  await dialog.getByRole("button", { name: "Use" }).click();
  // A wrong token is asked for again.
  await dialog.getByLabel("Token").fill("secret");
  await dialog.getByRole("button", { name: "Use" }).click();
  await page.locator("#live[data-state=live]").waitFor();
  assert(headers.has("Bearer secret"), "the token is sent as a bearer token");
  await page.reload();
  await page.locator("#live[data-state=live]").waitFor();
  equal(await dialog.count(), 0, "a reload keeps the token");
  equal(await page.evaluate(() => localStorage.length), 0, "nothing is stored beyond the tab");
  const other = await page.context().newPage();
  await other.goto(`${base}/`);
  await other.getByRole("dialog").waitFor();

  // The page of the API asks as well, and shows no operations without a valid token.
  await other.goto(`${base}/api/v1/docs`);
  const state = other.locator("#state");
  const enter = async (value, told) => {
    await other.getByLabel("Token").fill(value);
    await other.getByLabel("Token").press("Enter");
    await state.filter({ hasText: told }).waitFor();
  };
  await state.filter({ hasText: "enter a token" }).waitFor();
  await check(other, "API without a token");
  await enter("secret", /^Operations: \d\d$/);
  await enter("wrong", "the token is not valid");
  equal(await other.locator(".operation").count(), 0, "the operations without a valid token");
  await enter("secret", /^Operations: \d\d$/);
});
