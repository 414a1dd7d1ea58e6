// The chart of shares over time. Its numbers are in a table beside it, for those who do not see the picture.

import { h, s, table, row } from "./dom.js";
import { clockTime, count, share } from "./format.js";

// The width is that of the screen at most, so that the texts keep their size.
const WIDTH = Math.round(Math.min(720, Math.max(320, window.innerWidth - 70)));
const HEIGHT = 220;
const LEFT = 44;
const BOTTOM = 24;
const TOP = 10;
const RIGHT = 12;
const ROWS = 12;

const x = (at, all) => LEFT + ((WIDTH - LEFT - RIGHT) * at) / Math.max(1, all - 1);
const y = (part) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - part);

// Returns the shares of an interval on the new side; null without calls.
export function shares(interval) {
  const calls = interval.old + interval.new;
  const clients = interval.clients_old + interval.clients_both + interval.clients_new;
  return {
    calls: calls === 0 ? null : interval.new / calls,
    clients: clients === 0 ? null : interval.clients_new / clients,
  };
}

// Returns the seconds from the start of an interval to the end of the last one; a pause of the process makes them longer.
export function spanFrom({ seconds, intervals }, first) {
  const start = first > 0 ? intervals[first - 1].until : intervals[first].until - seconds;
  return Math.max(seconds, intervals.at(-1).until - start);
}

// Returns the path of a line that has a gap where there is no value.
function line(values) {
  let path = "";
  let isDrawing = false;
  values.forEach((value, at) => {
    if (value !== null) path += `${isDrawing ? "L" : "M"}${x(at, values.length).toFixed(1)} ${y(value).toFixed(1)}`;
    isDrawing = value !== null;
  });
  return path;
}

// Returns the areas under a line, one for each stretch without a gap.
function area(values) {
  let path = "";
  let from = null;
  const close = (to) => {
    if (from === null) return;
    path += `L${x(to, values.length).toFixed(1)} ${y(0)}L${x(from, values.length).toFixed(1)} ${y(0)}Z`;
    from = null;
  };
  values.forEach((value, at) => {
    if (value === null) return close(at - 1);
    path += `${from === null ? "M" : "L"}${x(at, values.length).toFixed(1)} ${y(value).toFixed(1)}`;
    if (from === null) from = at;
  });
  close(values.length - 1);
  return path;
}

function grid() {
  return [0, 0.25, 0.5, 0.75, 1].map((part) => [
    s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(part), y2: y(part) }),
    s("text", { class: "axis", x: LEFT - 8, y: y(part) + 4, "text-anchor": "end" }, `${part * 100} %`),
  ]);
}

function times(intervals, withDay) {
  const marks = Math.min(5, intervals.length);
  return Array.from({ length: marks }, (_, mark) => {
    const at = marks === 1 ? 0 : Math.round((mark * (intervals.length - 1)) / (marks - 1));
    const anchor = mark === 0 ? "start" : mark === marks - 1 ? "end" : "middle";
    return s("text", { class: "axis", x: x(at, intervals.length), y: HEIGHT - 6, "text-anchor": anchor }, clockTime(intervals[at].until, withDay));
  });
}

function describe(interval, withDay) {
  const { calls, clients } = shares(interval);
  const percent = (part) => (part === null ? "none" : `${Math.round(part * 100)} %`);
  return `${clockTime(interval.until, withDay)} · calls ${percent(calls)} of ${count(interval.old + interval.new)} · clients ${percent(clients)}`;
}

// Adds a line and a text that follow the pointer.
function addPointer(picture, readout, intervals, withDay) {
  const cursor = s("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
  picture.append(cursor);
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * WIDTH;
    const at = Math.round(((place - LEFT) / (WIDTH - LEFT - RIGHT)) * (intervals.length - 1));
    const nearest = Math.min(intervals.length - 1, Math.max(0, at));
    cursor.setAttribute("x1", x(nearest, intervals.length));
    cursor.setAttribute("x2", x(nearest, intervals.length));
    cursor.setAttribute("visibility", "visible");
    readout.textContent = describe(intervals[nearest], withDay);
  });
  picture.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    readout.textContent = describe(intervals.at(-1), withDay);
  });
}

function numbers(intervals, withDay) {
  const columns = [{ title: "Until" }, { title: "Old side", class: "number" }, { title: "New side", class: "number" }, { title: "Refused", class: "number" }, { title: "Share of calls", class: "number" }];
  const rows = intervals.slice(-ROWS).reverse().map((one) => row(columns, [
    clockTime(one.until, withDay), count(one.old), count(one.new), count(one.refused), share(one.new, one.old + one.new),
  ]));
  return h("details", {}, h("summary", {}, "The last intervals as a table"), table("The last intervals", columns, rows));
}

// Returns the chart of a timeline { seconds, intervals }.
export function timelineChart(timeline) {
  const { intervals, seconds } = timeline;
  if (intervals.length === 0) return h("p", { class: "faint" }, "The first interval ends ten seconds after the start.");
  const withDay = spanFrom(timeline, 0) > 86400;
  const calls = intervals.map((one) => shares(one).calls);
  const clients = intervals.map((one) => shares(one).clients);
  const picture = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", "aria-label": `Share on the new side over time. Latest: ${describe(intervals.at(-1), withDay)}` },
    grid(), times(intervals, withDay),
    s("path", { class: "area", d: area(calls) }), s("path", { class: "line calls", d: line(calls) }), s("path", { class: "line clients", d: line(clients) }));
  if (intervals.length === 1 && calls[0] !== null) picture.append(s("circle", { class: "point", cx: x(0, 1), cy: y(calls[0]), r: 4 }));
  const readout = h("p", { class: "readout" }, describe(intervals.at(-1), withDay));
  addPointer(picture, readout, intervals, withDay);
  const legend = h("p", { class: "legend" },
    h("span", { class: "key calls" }, "calls"), h("span", { class: "key clients" }, "clients that call only the new side"),
    h("span", { class: "faint" }, `intervals of ${seconds} s`));
  return h("figure", {}, h("figcaption", {}, legend), picture, readout, numbers(intervals, withDay));
}
