// The page of `answer = "docs"`: it shows the routes, and sends a call with values that contain special characters.

import { check, equal, holdFirst, withPage } from "./browser.mjs";

const calls = process.env.CONSOLE_CALLS;

await withPage(async (page) => {
  const sent = [];
  page.on("request", (request) => sent.push(new URL(request.url()).pathname));
  await page.goto(`${calls}/docs`);
  await page.getByText("Operations: 2", { exact: true }).waitFor();
  const send = async (operation, name, value, wanted) => {
    const part = page.locator(".operation", { has: page.locator("summary", { hasText: operation }) });
    if (!(await part.getByLabel(name).count())) await part.locator("summary").first().click();
    await part.getByLabel(name).fill(value);
    await part.getByRole("button", { name: "Send" }).click();
    await part.getByText(`GET ${wanted}`, { exact: true }).waitFor();
    await part.getByRole("status").filter({ hasText: /^200 / }).waitFor();
    equal(sent.at(-1), wanted, "the path that was sent");
  };
  await send("/files/{path}", "path", "a b/c%/d?e", "/files/a%20b/c%25/d%3Fe");
  await send("{id}", "id", "ß/1?{id}", "/gr%C3%B6%C3%9Fe/%C3%9F%2F1%3F%7Bid%7D");

  // The first of two calls gets its response last, which is dropped.
  const first = await holdFirst(page, "**/files/first");
  const part = page.locator(".operation", { has: page.locator("summary", { hasText: "/files/{path}" }) });
  await part.getByLabel("path").fill("first");
  await part.getByRole("button", { name: "Send" }).click();
  await part.getByText("Waiting for the response.").waitFor();
  await first.arrived;
  await send("/files/{path}", "path", "second", "/files/second");
  await first.release();
  equal(await part.getByText(/^GET /).allTextContents(), ["GET /files/second"], "the response that is shown");
  await check(page, "page of the routes");
}, { origin: calls });
