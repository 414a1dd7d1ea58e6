// The recording of calls: a person starts it, sees what it writes, and stops it. One that another person starts is seen as well.

import { api, assert, check, open, withPage } from "./browser.mjs";

await withPage(async (page) => {
  await open(page, "configuration");
  const panel = page.locator("section", { hasText: "Recording of calls" }).last();
  await panel.getByText("No recording since the start of the process.").waitFor();
  await panel.getByRole("button", { name: "Record calls" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Minutes").fill("30");
  await dialog.getByLabel("Percentage of calls").fill("50");
  await dialog.getByLabel("Bodies").selectOption("JSON and forms, redacted");
  await dialog.getByLabel("Why").fill("ticket 7");
  await check(page, "the dialog of a recording");
  await dialog.getByRole("button", { name: "Record" }).click();
  await panel.getByText("Calls are recorded.").waitFor();
  await panel.getByText("50 % of calls, with bodies").waitFor();
  await panel.getByText("29 min").waitFor();
  // The clients of the demo call all the time.
  await panel.locator("dd", { hasText: /^[1-9][\d,]* calls, [\d.]+ kB in 1 file$/ }).waitFor();
  await check(page, "a recording");
  await panel.getByRole("button", { name: "Stop the recording" }).click();
  await dialog.getByRole("button", { name: "Stop" }).click();
  await panel.getByText("Stopped: by command").waitFor();
  const { recording } = await api("GET", "recording");
  assert(recording.stopped.reason === "command" && recording.bodies && recording.sample === "50", JSON.stringify(recording));
  await check(page, "a recording that stopped");
  await api("PUT", "recording", { seconds: 8, who: "ben" });
  await panel.getByText("Calls are recorded.").waitFor();
  await panel.getByText("Stopped: its time is over").waitFor();
  assert(await panel.getByRole("button", { name: "Record calls" }).isVisible(), "it can be started again");
});
