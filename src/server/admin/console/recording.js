// The recording of calls: its state, its start and its end.

import { change, get } from "./api.js";
import { confirmChange } from "./dialog.js";
import { field, h, put, toast } from "./dom.js";
import { ago, bytes, dateTime, duration, plural } from "./format.js";

const REASONS = {
  command: "by command", time: "its time is over", size: "it has `record.total_size` bytes", disk_full: "the disk is full",
  error: "its file cannot be written", reload: "`[record]` was changed", shutdown: "the process ended",
};

function moment(text) {
  return h("time", { datetime: text, title: dateTime(text) }, ago(text));
}

function timeLeft(recording) {
  if (!recording.ends) return "no limit";
  return duration((Date.parse(recording.ends) - Date.now()) / 1000);
}

function end(stopped) {
  const isFault = stopped.error !== null || stopped.reason === "disk_full";
  const text = `Stopped: ${REASONS[stopped.reason] || stopped.reason}`;
  return h("p", { class: isFault ? "notice error" : "calm" }, text, stopped.error && ` (${stopped.error})`, ", ", moment(stopped.at), ".");
}

function state({ running, stopping, recording }) {
  if (!recording) return h("p", { class: "calm" }, "No recording since the start of the process.");
  const pairs = [
    ["Sample", `${recording.sample} % of calls, ${recording.bodies ? "with" : "without"} bodies`],
    ["Written", `${plural(recording.calls, "call")}, ${bytes(recording.bytes)} in ${plural(recording.files, "file")}`],
    recording.dropped > 0 && ["Not recorded", plural(recording.dropped, "call")],
    ["Started", moment(recording.started)],
    running && ["Time left", timeLeft(recording)],
    ["Folder", h("code", {}, recording.directory)],
    ["Last file", h("code", {}, recording.file)],
  ].filter(Boolean);
  const now = stopping ? "The disk does not respond: the recording stops once it does. No more calls are recorded." : "Calls are recorded.";
  return [running ? h("p", { class: `notice ${stopping ? "error" : "warning"}` }, now) : end(recording.stopped),
    h("dl", { class: "facts" }, pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))))];
}

// Asks for the settings of a recording; returns the body of the request, or null.
async function settings() {
  const minutes = h("input", { type: "number", min: 1, max: 1440, required: true, value: "10" });
  const sample = h("input", { type: "number", min: 0.001, max: 100, step: 0.001, required: true, value: "100" });
  const bodies = h("select", {}, h("option", { value: "" }, "As configured"), h("option", { value: "false" }, "No"), h("option", { value: "true" }, "JSON and forms, redacted"));
  const fields = [field("Minutes", minutes), field("Percentage of calls", sample), field("Bodies", bodies)];
  const text = "The files are written to `record.directory` on the machine of the proxy. Credentials are never recorded.";
  const why = await confirmChange({ title: "Record calls?", text, action: "Record", fields });
  if (why === null) return null;
  const body = { seconds: Math.round(Number(minutes.value) * 60), sample: Number(sample.value), why };
  return bodies.value ? { ...body, bodies: bodies.value === "true" } : body;
}

export function recordingPanel() {
  const shown = h("div");
  const start = h("button", { type: "button", class: "primary", onclick: begin }, "Record calls");
  const stop = h("button", { type: "button", onclick: finish }, "Stop the recording");
  const element = h("section", { class: "panel" }, h("h2", {}, "Recording of calls"), shown, h("p", { class: "buttons" }, start, stop));
  start.hidden = true;
  stop.hidden = true;

  function show(found) {
    put(shown, state(found));
    start.hidden = found.running;
    stop.hidden = !found.running;
  }

  async function load() {
    try {
      show(await get("recording"));
    } catch (error) {
      put(shown, h("p", { class: "notice error" }, error.message));
    }
  }

  async function send(method, body, done) {
    try {
      const found = await change(method, "recording", body);
      show(found);
      if (!found.stopping) toast(done);
    } catch (error) {
      toast(error.message, "error");
      load();
    }
  }

  async function begin() {
    const body = await settings();
    if (body !== null) await send("PUT", body, "Calls are recorded.");
  }

  async function finish() {
    const why = await confirmChange({ title: "Stop the recording?", text: "Its files stay.", action: "Stop" });
    if (why !== null) await send("DELETE", { why }, "The recording stopped.");
  }

  return { element, load };
}
