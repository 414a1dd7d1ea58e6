// The live stream of overviews, read with fetch so that the token can be sent in a header.

import { request } from "./api.js";

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 10000;

// Yields the data of the events in a stream of text.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
      if (data.length > 0) yield JSON.parse(data.join("\n"));
    }
  }
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Waits until the page is visible. A hidden page holds no stream: browsers allow six connections to a server.
function visible() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((done) => document.addEventListener("visibilitychange", done, { once: true })).then(visible);
}

// Returns a controller that aborts when the page becomes hidden.
function untilHidden() {
  const abort = new AbortController();
  document.addEventListener("visibilitychange", () => document.hidden && abort.abort(), { signal: abort.signal });
  return abort;
}

// Passes each overview to `show`, and each state of the connection to `tell`. A stream that ended is opened again.
export async function follow(show, tell) {
  let wait = FIRST_WAIT;
  for (;;) {
    await visible();
    const abort = untilHidden();
    try {
      const response = await request("/api/v1/live", { signal: abort.signal });
      for await (const overview of events(response.body)) {
        wait = FIRST_WAIT;
        tell("live", "live");
        show(overview);
      }
      // The server ends a stream now and then; the next one is opened at once.
      await pause(100);
    } catch (error) {
      if (error.name === "AbortError") continue;
      tell("lost", error.status === 401 ? "token needed" : "not connected");
      await pause(wait);
      wait = Math.min(wait * 2, LONGEST_WAIT);
    } finally {
      abort.abort();
    }
  }
}
