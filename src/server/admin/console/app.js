// The console: it shows the page that the address names, and follows the live stream.

import { askToken, confirmChange } from "./dialog.js";
import { change, hasToken, onTokenNeeded, setToken } from "./api.js";
import { byId, h, toast } from "./dom.js";
import { ago } from "./format.js";
import { follow } from "./live.js";
import { clientsPage } from "./pages/clients.js";
import { configurationPage } from "./pages/configuration.js";
import { differencesPage } from "./pages/differences.js";
import { explainPage } from "./pages/explain.js";
import { flagsPage } from "./pages/flags.js";
import { overviewPage } from "./pages/overview.js";
import { routePage, routesPage } from "./pages/routes.js";

const PAGES = {
  overview: { title: "Overview", make: overviewPage },
  flags: { title: "Flags", make: flagsPage },
  differences: { title: "Differences", make: differencesPage },
  clients: { title: "Clients", make: clientsPage },
  routes: { title: "Routes", make: (address) => (address.name ? routePage(address) : routesPage()) },
  explain: { title: "Explain", make: explainPage },
  configuration: { title: "Configuration", make: configurationPage },
};

let shown = null;
let overview = null;

// Decodes a name; one that is not encoded stays as it is.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Reads `#/page/name?key=value`.
function address() {
  const [path, query] = location.hash.replace(/^#\//, "").split("?");
  const [page, ...name] = path.split("/");
  return { page: Object.hasOwn(PAGES, page) ? page : "overview", name: decoded(name.join("/")), query: new URLSearchParams(query || "") };
}

function links(current) {
  const items = Object.entries(PAGES).map(([name, page]) => h("li", {}, h("a", { href: `#/${name}`, "aria-current": name === current ? "page" : null }, page.title)));
  items.push(h("li", {}, h("a", { href: "/api/v1/docs" }, "API")));
  byId("pages").replaceChildren(...items);
  // On a narrow screen the links scroll.
  byId("pages").querySelector("[aria-current]").scrollIntoView({ block: "nearest", inline: "center" });
}

function show() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  const isFirst = shown === null;
  const to = address();
  links(to.page);
  shown = PAGES[to.page].make(to);
  document.title = `${shown.title} · dualgauge`;
  byId("main").replaceChildren(shown.element);
  shown.start?.();
  if (overview) shown.show?.(overview);
  if (!isFirst) byId("main").focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function setLive(state, text) {
  if (byId("live").dataset.state === state && byId("live-text").textContent === text) return;
  byId("live").dataset.state = state;
  byId("live-text").textContent = text;
}

function banner() {
  const kill = overview.kill;
  byId("kill").textContent = kill ? "Kill switch is on" : "Kill switch";
  const text = kill && `${kill.who}|${kill.at}`;
  if ((byId("banner").dataset.kill || null) === (text || null)) return;
  byId("banner").dataset.kill = text || "";
  byId("banner").replaceChildren(...(kill ? [h("section", { class: "killed", "aria-label": "Kill switch" },
    h("p", {}, h("strong", {}, h("span", { role: "alert" }, "The kill switch is on.")), ` ${kill.who}, ${ago(kill.at)}${kill.why ? `: ${kill.why}` : ""}. Calls pass through to the side that they were sent to.`),
    h("button", { type: "button", onclick: revive }, "Turn off"))] : []));
}

async function turn(method, why, done) {
  try {
    const flags = await change(method, "kill", { why });
    overview = { ...overview, kill: flags.kill };
    banner();
    if (done) toast(done);
  } catch (error) {
    toast(error.message, "error");
  }
  shown.changed?.();
}

async function kill() {
  if (overview?.kill) return revive();
  const text = "All calls pass through to the side that they were sent to, at once and on every replica. No flag decides until you turn it off.";
  const why = await confirmChange({ title: "Turn the kill switch on?", text, action: "Turn on", isDanger: true });
  // The banner announces it, so there is no toast.
  if (why !== null) await turn("PUT", why, null);
}

async function revive() {
  const why = await confirmChange({ title: "Turn the kill switch off?", text: "The flags decide again, as they stand now.", action: "Turn off" });
  if (why !== null) await turn("DELETE", why, "The kill switch is off.");
}

let isAsking = false;
let isDeclined = false;

async function token(text) {
  if (isAsking) return;
  isAsking = true;
  const answer = await askToken(text);
  isAsking = false;
  isDeclined = answer === null;
  if (isDeclined) return;
  setToken(answer);
  byId("token").textContent = hasToken() ? "Token ✓" : "Token";
  show();
}

const THEMES = ["system", "light", "dark"];

function setTheme(theme) {
  sessionStorage.setItem("dualgauge-theme", theme);
  document.documentElement.dataset.theme = theme;
  byId("theme").setAttribute("aria-label", `Colours: ${theme}`);
  byId("theme").title = `Colours: ${theme}`;
}

setTheme(sessionStorage.getItem("dualgauge-theme") || "system");
byId("theme").addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]));
byId("kill").addEventListener("click", kill);
byId("token").addEventListener("click", () => token("Requests carry it as a bearer token."));
if (hasToken()) byId("token").textContent = "Token ✓";
onTokenNeeded(() => isDeclined || token(hasToken() ? "The admin API rejected this token." : "The admin API needs a token."));
window.addEventListener("hashchange", show);
show();
follow((next) => {
  const isOther = overview && (overview.revision !== next.revision || overview.reloads !== next.reloads);
  overview = next;
  banner();
  if (isOther) shown.changed?.();
  shown.show?.(next);
}, setLive);
