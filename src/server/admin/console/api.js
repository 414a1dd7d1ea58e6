// The admin API. The token is kept in this tab only: in memory, and in sessionStorage for reloads of the page.

const KEY = "dualgauge-token";
const NAME = "dualgauge-name";

let token = sessionStorage.getItem(KEY) || "";
let needToken = () => {};

// An error that the API reported, or that kept it from being reached.
export class ApiError extends Error {
  constructor(status, problem) {
    super([problem.detail, problem.hint].filter(Boolean).join("; "));
    this.status = status;
    this.problems = problem.problems || [];
  }
}

export function setToken(text) {
  token = text;
  if (text) sessionStorage.setItem(KEY, text);
  else sessionStorage.removeItem(KEY);
}

export function hasToken() {
  return token !== "";
}

// Calls `ask` whenever the API wants another token.
export function onTokenNeeded(ask) {
  needToken = ask;
}

export function yourName() {
  return sessionStorage.getItem(NAME) || "";
}

export function setYourName(name) {
  sessionStorage.setItem(NAME, name);
}

// Sends a request to this origin, without cookies.
export async function request(path, options = {}) {
  const headers = { accept: "application/json", ...options.headers };
  if (token) headers.authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, credentials: "omit", cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { detail: "The proxy does not answer." });
  }
  if (response.status === 401) needToken();
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({ detail: `The proxy answered with status ${response.status}.` }));
  throw new ApiError(response.status, problem);
}

export function query(parameters) {
  const pairs = Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  return pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : "";
}

export async function get(path, parameters = {}, signal = undefined) {
  const response = await request(`/api/v1/${path}${query(parameters)}`, { signal });
  return response.json();
}

// Sends a change, signed with the name of the person. `tag` is the version that the person has seen.
export async function change(method, path, body, tag) {
  const who = yourName();
  const headers = { "content-type": "application/json" };
  if (tag) headers["if-match"] = `"${tag}"`;
  const signed = { ...body };
  if (who) signed.who = who;
  if (!signed.why) delete signed.why;
  const response = await request(`/api/v1/${path}`, { method, headers, body: JSON.stringify(signed) });
  return response.json();
}

// A name as a segment of a path.
export function segment(name) {
  return encodeURIComponent(name);
}
