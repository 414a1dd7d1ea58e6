// The parts that all scripts share: a browser that sees only this origin, a check of accessibility, and screenshots.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { CONSOLE_NPM: npm, CONSOLE_URL: base, CONSOLE_SHOTS: shots } = process.env;
const require = createRequire(join(npm, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

// The most rows that a page may have in its document.
const MOST_ROWS = 100;

// The live regions of a page, and the most characters that one may have.
const LIVE = ":is([aria-live], [role=status], [role=alert], [role=log], output)";
const MOST_ANNOUNCED = 300;

export { base };

export function assert(holds, text) {
  if (!holds) throw new Error(text);
}

export function equal(found, wanted, text) {
  assert(JSON.stringify(found) === JSON.stringify(wanted), `${text}: ${JSON.stringify(found)} is not ${JSON.stringify(wanted)}`);
}

// Sends a request to the admin API, as another person would.
export async function api(method, path, body) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${base}/api/v1/${path}`, { method, headers, body: body && JSON.stringify(body) });
  assert(response.ok, `${method} ${path}: ${response.status}`);
  return response.json();
}

// Holds the response to the first request of a URL back. `arrived` is fulfilled when the page sends it; `release` gives the page
// the response, and returns when the page has read its body and acted on it.
export async function holdFirst(page, url) {
  let arrive, free;
  const arrived = new Promise((resolve) => { arrive = resolve; });
  const freed = new Promise((resolve) => { free = resolve; });
  let requests = 0;
  await page.route(url, async (call) => {
    requests += 1;
    if (requests === 1) {
      arrive();
      await freed;
    }
    await call.continue();
  });
  await page.evaluate(() => {
    window.bodiesRead = 0;
    for (const kind of [Blob, Response]) {
      const { text } = kind.prototype;
      kind.prototype.text = async function() {
        const read = await text.call(this);
        window.bodiesRead += 1;
        return read;
      };
    }
  });
  async function release() {
    const before = await page.evaluate(() => window.bodiesRead);
    free();
    // It is polled in animation frames, after the continuations of the page.
    await page.waitForFunction((count) => window.bodiesRead > count, before);
  }
  return { arrived, release };
}

const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox"] });

// Runs a function in a page of `url`, and records all requests of the page in a HAR file. Chromium exports such files only by hand, in its
// developer tools; playwright's `recordHar` writes one from the same events of the browser.
export async function recordHar(path, url, calls) {
  const browser = await launch();
  try {
    const context = await browser.newContext({ recordHar: { path, content: "embed" } });
    const page = await context.newPage();
    await page.goto(url);
    await page.evaluate(calls);
    // This writes the file.
    await context.close();
  } finally {
    await browser.close();
  }
}

// Runs a test with a page; it fails on errors of the page and on requests to other origins.
export async function withPage(test, { origin = base, ...options } = {}) {
  const browser = await launch();
  const faults = [];
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, colorScheme: "light", ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(20000);
    page.on("pageerror", (error) => faults.push(`error of the page: ${error.message}`));
    page.on("console", (message) => {
      // A refused change is logged by the browser itself.
      if (message.type() === "error" && !/status of (401|404|409|412|422|503)/.test(message.text())) faults.push(`console: ${message.text()}`);
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(`${origin}/`)) faults.push(`a request to another origin: ${request.url()}`);
    });
    await test(page);
    const { cookies } = await context.storageState();
    equal(cookies, [], "cookies");
  } finally {
    await browser.close();
  }
  equal(faults, [], "faults");
}

export async function open(page, hash) {
  await page.goto(`${base}/#/${hash}`);
  await page.locator("#live[data-state=live]").waitFor();
}

// Checks a page in both colour schemes and on a narrow screen, then returns to the wide one.
export async function check(page, name) {
  for (const [width, colorScheme] of [[1280, "dark"], [400, "light"], [400, "dark"], [1280, "light"]]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 860 });
    const found = await page.evaluate((live) => ({
      rows: document.querySelectorAll("tr, article, main li").length,
      overflow: document.documentElement.scrollWidth - window.innerWidth,
      nested: document.querySelectorAll(`${live} ${live}`).length,
      announced: Math.max(0, ...[...document.querySelectorAll(live)].map((region) => region.textContent.length)),
    }), LIVE);
    equal(found.nested, 0, `${name}: live regions within live regions`);
    assert(found.announced <= MOST_ANNOUNCED, `${name}: a live region of ${found.announced} characters`);
    assert(found.rows <= MOST_ROWS, `${name}: ${found.rows} rows`);
    assert(found.overflow <= 0, `${name} at ${width} px: ${found.overflow} px too wide`);
    await accessible(page, `${name} at ${width} px, ${colorScheme}`);
  }
}

async function accessible(page, name) {
  const violations = await page.evaluate(async (source) => {
    if (!window.axe) (0, eval)(source);
    const { violations: all } = await window.axe.run(document, { resultTypes: ["violations"] });
    return all.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(" | ")}`);
  }, axe);
  equal(violations, [], `${name}: faults of accessibility`);
}

// Makes the picture of the documents.
export async function picture(page, name, height = 860) {
  if (!shots) return;
  await page.setViewportSize({ width: 1280, height });
  await page.locator(".toast").first().waitFor({ state: "detached" });
  await page.evaluate(() => document.activeElement?.blur());
  await page.screenshot({ path: join(shots, `${name}.png`), animations: "disabled" });
}
