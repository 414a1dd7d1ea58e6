// Numbers and times for people.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function count(number) {
  return whole.format(number);
}

export function compact(number) {
  return number < 10000 ? whole.format(number) : short.format(number);
}

// A size in decimal units, such as "1.2 MB".
export function bytes(number) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (number >= size) return `${Number((number / size).toFixed(1))} ${unit}`;
  }
  return plural(number, "byte");
}

export function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

// A share as a percentage; never 0 % or 100 % for something between.
export function share(part, all) {
  if (all === 0) return "–";
  const percent = (part / all) * 100;
  if (part > 0 && percent < 0.1) return "< 0.1 %";
  if (part < all && percent > 99.9) return "> 99.9 %";
  return `${percent < 10 ? Number(percent.toFixed(1)) : Math.round(percent)} %`;
}

export function milliseconds(ms) {
  if (ms >= 1000) return `${Number((ms / 1000).toFixed(2))} s`;
  return `${ms < 10 ? Number(ms.toFixed(2)) : Math.round(ms)} ms`;
}

export function duration(seconds) {
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${Math.max(0, Math.floor(seconds))} s`;
}

// The age of a moment, such as "3 min ago".
export function ago(text) {
  if (!text) return "never";
  const seconds = (Date.now() - Date.parse(text)) / 1000;
  return seconds < 2 ? "just now" : `${duration(seconds)} ago`;
}

export function clockTime(unixSeconds, withDay) {
  const at = new Date(unixSeconds * 1000);
  const time = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: withDay ? undefined : "2-digit" });
  return withDay ? `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}` : time;
}

export function dateTime(text) {
  return text ? new Date(text).toLocaleString("en-GB") : "";
}
