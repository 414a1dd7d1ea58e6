// Dialogs: the browser keeps the focus inside, and gives it back.

import { byId, field, h } from "./dom.js";
import { setYourName, yourName } from "./api.js";

function open(title, content, buttons) {
  const dialog = h("dialog", { "aria-label": title });
  const form = h("form", { method: "dialog" }, h("h2", {}, title), content, h("p", { class: "buttons" }, buttons));
  dialog.append(form);
  document.body.append(dialog);
  // Content outside a modal dialog is inert: screen readers do not announce toasts there.
  const toasts = byId("toasts");
  const outside = toasts.parentElement;
  dialog.append(toasts);
  dialog.addEventListener("close", () => {
    if (dialog.contains(toasts)) (outside.isConnected ? outside : document.body).append(toasts);
    dialog.remove();
  });
  dialog.showModal();
  return { dialog, form };
}

// Asks for a reason and a confirmation, below further fields; returns the reason, or null.
export function confirmChange({ title, text, action, isDanger = false, fields = [] }) {
  const why = h("input", { autocomplete: "off", maxlength: 500, required: isDanger, ...(isDanger && { pattern: ".*\\S.*", title: "a reason" }) });
  const who = nameInput();
  const cancel = h("button", { type: "button", class: "quiet" }, "Cancel");
  const go = h("button", { type: "submit", class: isDanger ? "danger" : "primary" }, action);
  const { dialog, form } = open(title, [h("p", {}, text), fields, field("Why", why), field("Who", who)], [cancel, go]);
  return new Promise((done) => {
    let answer = null;
    cancel.addEventListener("click", () => dialog.close());
    form.addEventListener("submit", () => { answer = why.value.trim(); });
    dialog.addEventListener("close", () => done(answer));
    why.focus();
  });
}

// Asks for a token; returns it, or null.
export function askToken(text) {
  const token = h("input", { type: "password", autocomplete: "off", spellcheck: "false" });
  const cancel = h("button", { type: "button", class: "quiet" }, "Cancel");
  const go = h("button", { type: "submit", class: "primary" }, "Use");
  const hint = "It stays in this tab and is never stored in a cookie.";
  const { dialog, form } = open("Token of the admin API", [h("p", {}, text), field("Token", token, hint)], [cancel, go]);
  return new Promise((done) => {
    let answer = null;
    cancel.addEventListener("click", () => dialog.close());
    form.addEventListener("submit", () => { answer = token.value.trim(); });
    dialog.addEventListener("close", () => done(answer));
  });
}

// Shows content that is only read.
export function showDialog(title, content) {
  open(title, content, h("button", { type: "submit", class: "primary" }, "Close")).dialog.classList.add("wide");
}

// The input for the name under which changes are recorded.
export function nameInput() {
  return h("input", { autocomplete: "username", maxlength: 100, value: yourName(), onchange: (event) => setYourName(event.target.value.trim()) });
}
