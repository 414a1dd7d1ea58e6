// Reads an entry of a HAR file (HTTP Archive 1.2), a whole file, or only its request.

import { checkLength, target } from "./curl.js";

// HTTP/2 has its method, path and host as headers; the call has them already.
const isField = (name) => !name.startsWith(":") && !["host", "content-length", "connection", "accept-encoding"].includes(name.toLowerCase());

// Returns { method, target, headers, body } of the first request.
export function parseHar(text) {
  checkLength(text);
  const value = JSON.parse(text);
  const entry = value.log ? value.log.entries?.[0] : value;
  const request = entry?.request || entry;
  if (typeof request?.url !== "string") throw new Error("This JSON has no HAR request with a `url`.");
  const headers = (request.headers || []).filter((header) => isField(header.name)).map((header) => [header.name, header.value]);
  return { method: request.method || "GET", target: target(request.url), headers, body: content(request.postData) };
}

function content(data) {
  if (data?.text && data.encoding === "base64") {
    const bytes = Uint8Array.from(atob(data.text), (byte) => byte.charCodeAt(0));
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch {
      throw new Error("The body of the request is no text.");
    }
  }
  const pairs = (data?.params || []).map(({ name, value }) => [name, value ?? ""]);
  return data?.text || new URLSearchParams(pairs).toString();
}
