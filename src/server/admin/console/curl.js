// Reads a curl command as it is copied from a browser's developer tools or a terminal.

// Options that change nothing here: those with a value, and those without one.
const WITH_VALUE = new Set(["-o", "-c", "-x", "-m", "-w", "-T", "-K", "--cookie-jar", "--proxy", "--max-time", "--output", "--connect-timeout", "--write-out", "--cacert", "--cert", "--key", "--resolve", "--retry"]);
const ALONE = new Set(["--compressed", "--fail", "--globoff", "--http1.1", "--http2", "--include", "--insecure", "--ipv4", "--ipv6", "--location", "--no-buffer", "--path-as-is", "--silent", "--show-error", "--verbose"]);
const SHORT_ALONE = /^-[SNfgikLsv#46]+$/;
const LONGEST = 1 << 20;
const DATA = new Set(["-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--data-urlencode", "--json"]);

// Splits a command into words as a POSIX shell does, with $'…' of bash.
export function words(text) {
  const found = [];
  const rest = /\s*(?:\\\r?\n\s*)*/y;
  let at = 0;
  while (at < text.length) {
    rest.lastIndex = at;
    rest.exec(text);
    at = rest.lastIndex;
    if (at >= text.length) break;
    let word = "";
    while (at < text.length && !/\s/.test(text[at])) {
      const piece = quoted(text, at) || plain(text, at);
      word += piece.text;
      at = piece.end;
    }
    found.push(word);
  }
  return found;
}

const ESCAPES = { n: "\n", t: "\t", r: "\r", "\\": "\\", "'": "'", '"': '"' };

function quoted(text, at) {
  if (text.startsWith("$'", at)) return dollarQuoted(text, at + 2);
  const quote = text[at];
  if (quote !== "'" && quote !== '"') return null;
  let value = "";
  for (let place = at + 1; place < text.length; place += 1) {
    if (text[place] === quote) return { text: value, end: place + 1 };
    if (quote === '"' && text[place] === "\\" && /["\\$`\n]/.test(text[place + 1] || "")) place += 1;
    value += text[place];
  }
  throw new Error("A quotation mark is not closed.");
}

function dollarQuoted(text, from) {
  let value = "";
  for (let place = from; place < text.length; place += 1) {
    if (text[place] === "'") return { text: value, end: place + 1 };
    if (text[place] !== "\\") {
      value += text[place];
      continue;
    }
    const code = /^u([0-9a-fA-F]{4})|^x([0-9a-fA-F]{2})/.exec(text.slice(place + 1, place + 6));
    if (code) {
      value += String.fromCharCode(parseInt(code[1] || code[2], 16));
      place += code[0].length;
    } else {
      place += 1;
      value += ESCAPES[text[place]] ?? text[place];
    }
  }
  throw new Error("A quotation mark is not closed.");
}

function plain(text, at) {
  if (text[at] === "\\" && at + 1 < text.length) return { text: text[at + 1] === "\n" ? "" : text[at + 1], end: at + 2 };
  return { text: text[at], end: at + 1 };
}

// Returns the path and query of a URL; other hosts do not matter here.
export function target(url) {
  const at = new URL(url, "http://proxy.invalid");
  return at.pathname + at.search;
}

// Fails for a text that no person copies.
export function checkLength(text) {
  if (text.length > LONGEST) throw new Error("The text has more than 1 MiB.");
}

// Returns { method, target, headers: [[name, value]], body } of a curl command.
export function parseCurl(text) {
  checkLength(text);
  const [program, ...rest] = words(text);
  if (program !== "curl") throw new Error("This is not a curl command.");
  const call = { method: "", url: "", headers: [], bodies: [], isGet: false };
  while (rest.length > 0) take(rest, call);
  if (!call.url) throw new Error("The curl command names no URL.");
  const body = call.bodies.join("&");
  if (call.isGet && body) call.url += (call.url.includes("?") ? "&" : "?") + body;
  const hasBody = call.bodies.length > 0 && !call.isGet;
  if (hasBody && !call.headers.some(([name]) => name.toLowerCase() === "content-type")) call.headers.push(["content-type", call.isJson ? "application/json" : "application/x-www-form-urlencoded"]);
  return { method: call.method || (hasBody ? "POST" : "GET"), target: target(call.url), headers: call.headers, body: hasBody ? body : "" };
}

// Splits `-XPOST` and `--name=value` into the option and its value.
function option(word) {
  if (word.startsWith("--") && word.includes("=")) return [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)];
  if (/^-[XHdAeubF]./.test(word)) return [word.slice(0, 2), word.slice(2)];
  return [word, null];
}

function take(rest, call) {
  const [name, inline] = option(rest.shift());
  const value = () => inline ?? rest.shift() ?? "";
  if (name === "-X" || name === "--request") call.method = value();
  else if (name === "-H" || name === "--header") addHeader(call, value());
  else if (DATA.has(name)) {
    call.isJson ||= name === "--json";
    call.bodies.push(data(name, value()));
  } else if (name === "-G" || name === "--get") call.isGet = true;
  else if (name === "-I" || name === "--head") call.method = "HEAD";
  else if (name === "--url") call.url = value();
  else if (name === "-b" || name === "--cookie") call.headers.push(["cookie", value()]);
  else if (name === "-A" || name === "--user-agent") call.headers.push(["user-agent", value()]);
  else if (name === "-e" || name === "--referer") call.headers.push(["referer", value()]);
  else if (name === "-u" || name === "--user") call.headers.push(["authorization", `Basic ${base64(value())}`]);
  else if (WITH_VALUE.has(name)) value();
  else if (!name.startsWith("-")) call.url ||= name;
  else if (!ALONE.has(name) && !SHORT_ALONE.test(name)) throw new Error(`The option ${name} is not supported here. Remove it, or fill in the form.`);
}

// Returns the text that a data option adds to the body.
function data(name, value) {
  const isEncoded = name === "--data-urlencode";
  const isFile = name !== "--data-raw" && (value.startsWith("@") || (isEncoded && /^[^=@]*@/.test(value)));
  if (isFile) throw new Error(`${name} reads a file. Fill its content into the form.`);
  if (!isEncoded) return value;
  const sign = value.indexOf("=");
  return value.slice(0, Math.max(sign, 0)) + (sign > 0 ? "=" : "") + encodeURIComponent(value.slice(sign + 1));
}

function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function addHeader(call, text) {
  const colon = text.indexOf(":");
  if (colon > 0) call.headers.push([text.slice(0, colon).trim(), text.slice(colon + 1).trim()]);
}
