"use strict";
// Shows the OpenAPI document of this origin. Text of the document is only ever added as text.

const METHODS = ["get", "post", "put", "patch", "delete", "head", "options", "trace"];
const DEEPEST = 8;
const MOST_SHOWN = 200000;
const BEARER = { header: "authorization", prefix: "Bearer ", title: "Token" };
const TYPING_MS = 250;
let credential = null;
// The number of the last load: an earlier one that ends later is dropped.
let turn = 0;

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

function add(parent, ...children) {
  for (const child of children) if (child) parent.append(child);
  return parent;
}

// Follows a reference inside the document; a loop or a missing target stays as it is.
function follow(root, value) {
  for (let count = 0; count < 32 && value && typeof value.$ref === "string"; count += 1) {
    if (!value.$ref.startsWith("#/")) return value;
    let target = root;
    for (const part of value.$ref.slice(2).split("/")) {
      let name = part;
      try { name = decodeURIComponent(part); } catch { return value; }
      name = name.replaceAll("~1", "/").replaceAll("~0", "~");
      if (target === null || typeof target !== "object" || !Object.hasOwn(target, name)) return value;
      target = target[name];
    }
    value = target;
  }
  return value;
}

// Returns an example value of a schema.
function sample(root, schema, depth) {
  schema = follow(root, schema);
  if (!schema || typeof schema !== "object" || depth > DEEPEST) return null;
  if ("default" in schema) return schema.default;
  if ("const" in schema) return schema.const;
  if (Array.isArray(schema.examples) && schema.examples.length > 0) return schema.examples[0];
  if ("example" in schema) return schema.example;
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum[0];
  const choices = schema.allOf || schema.anyOf || schema.oneOf;
  if (Array.isArray(choices) && choices.length > 0 && !schema.properties) return sample(root, choices[0], depth + 1);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "object" || schema.properties) {
    const value = {};
    const required = Array.isArray(schema.required) ? schema.required : [];
    for (const [name, member] of Object.entries(schema.properties || {})) {
      if (required.includes(name)) value[name] = sample(root, member, depth + 1);
    }
    return value;
  }
  if (type === "array") return [];
  if (type === "integer" || type === "number") return typeof schema.minimum === "number" ? schema.minimum : 1;
  if (type === "boolean") return true;
  if (type === "null") return null;
  return "text";
}

function typeOf(root, schema) {
  const target = follow(root, schema);
  if (!target || typeof target !== "object") return "any";
  if (Array.isArray(target.type)) return target.type.join(" or ");
  if (target.type === "array") return "array of " + typeOf(root, target.items);
  if (target.type) return target.type;
  if (Array.isArray(target.enum)) return "one of " + target.enum.map((word) => JSON.stringify(word)).join(", ");
  for (const word of ["anyOf", "oneOf"]) {
    if (Array.isArray(target[word])) return target[word].map((choice) => typeOf(root, choice)).join(" or ");
  }
  return "any";
}

function schemaOf(media) {
  return media && (media.schema || {});
}

function row(cells, tag) {
  const line = make("tr");
  for (const cell of cells) line.append(make(tag || "td", cell));
  return line;
}

function members(root, schema) {
  const target = follow(root, schema);
  const properties = target && target.properties;
  if (!properties || Object.keys(properties).length === 0) return null;
  const required = Array.isArray(target.required) ? target.required : [];
  const table = make("table");
  table.append(row(["Name", "Type", "Required", "Description"], "th"));
  for (const [name, member] of Object.entries(properties)) {
    const words = (follow(root, member) || {}).description || (member || {}).title || "";
    table.append(row([name, typeOf(root, member), required.includes(name) ? "yes" : "no", words]));
  }
  return table;
}

// Returns a block of text that the keyboard can scroll.
function block(label, text) {
  const part = make("pre", text.slice(0, MOST_SHOWN));
  part.tabIndex = 0;
  part.setAttribute("role", "group");
  part.setAttribute("aria-label", label);
  return part;
}

function schemaBlock(title, label, root, schema) {
  const part = make("details");
  part.append(make("summary", title));
  const text = JSON.stringify(follow(root, schema), null, 2) || "";
  part.append(add(make("div", undefined, "inside"), block(label, text)));
  return part;
}

function parametersTable(root, parameters) {
  const table = make("table");
  table.append(row(["Name", "In", "Type", "Required", "Description"], "th"));
  for (const parameter of parameters) {
    const content = parameter.content && schemaOf(parameter.content["application/json"]);
    const schema = parameter.schema || content;
    const type = typeOf(root, schema) + (content ? " as JSON" : "");
    const words = parameter.description || (follow(root, schema) || {}).description || "";
    table.append(row([parameter.name, parameter.in, type, parameter.required ? "yes" : "no", words]));
  }
  return table;
}

function field(form, id, label, input) {
  input.id = id;
  const words = make("label", label);
  words.htmlFor = id;
  form.append(add(make("p"), words, make("br"), input));
  return input;
}

// Returns the path of a template with its encoded values. The text around them may be encoded already.
function fillPath(template, values) {
  return template.replace(/\{([^{}]*)\}|[^{}]+/g, (part, name) =>
    values.get(name) ?? encodeURI(part).replace(/%25(?=[0-9a-f]{2})/gi, "%"));
}

function target(path, inputs) {
  const values = new Map();
  const query = new URLSearchParams();
  const headers = {};
  for (const { parameter, input } of inputs) {
    const value = input.value;
    if (parameter.in === "path") {
      const encoded = encodeURIComponent(value);
      values.set(parameter.name, parameter["x-dualgauge-segments"] === "any" ? encoded.replaceAll("%2F", "/") : encoded);
    } else if (value === "") {
      continue;
    } else if (parameter.in === "query") {
      const list = parameter.list ? value.split("\n") : [value];
      for (const one of list) query.append(parameter.name, one);
    } else if (parameter.in === "header") {
      headers[parameter.name] = value;
    }
  }
  const text = query.toString();
  return { url: fillPath(path, values) + (text ? "?" + text : ""), headers };
}

// Returns the body of a response: an image as such, JSON and text as text, and of all else the size.
async function shownBody(response, kind) {
  const blob = await response.blob();
  if (blob.size === 0) return make("p", "The response has no body.");
  if (kind.startsWith("image/")) {
    const image = make("img");
    image.alt = `${blob.size} bytes of ${kind}`;
    for (const event of ["load", "error"]) image.addEventListener(event, () => URL.revokeObjectURL(image.src));
    image.src = URL.createObjectURL(blob);
    return image;
  }
  if (!/json|text|xml|yaml|javascript|no content/.test(kind)) return make("p", `${blob.size} bytes of ${kind}`);
  let text = await blob.text();
  if (kind.includes("json")) {
    try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* shown as it came */ }
  }
  return block("Body of the response", text);
}

// Shows a sentence in a live region. A screen reader reads a live region whole, so it contains only this sentence.
function announce(status, sentence, isWrong) {
  status.textContent = sentence;
  status.classList.toggle("wrong", isWrong);
}

// The number of the last call of each form, by its output. A response to an earlier call is dropped.
const lastCalls = new WeakMap();

async function send(method, path, inputs, body, status, output) {
  const number = (lastCalls.get(output) || 0) + 1;
  lastCalls.set(output, number);
  announce(status, "Waiting for the response.", false);
  output.replaceChildren();
  try {
    const { url, headers } = target(path, inputs);
    const key = document.getElementById("key").value;
    if (credential && key) headers[credential.header] = credential.prefix + key;
    const options = { method: method.toUpperCase(), headers, credentials: "same-origin", redirect: "manual" };
    if (body) {
      options.body = body.value;
      headers["content-type"] = "application/json";
    }
    const began = performance.now();
    const response = await fetch(url, options);
    const kind = response.headers.get("content-type") || "no content";
    const shown = await shownBody(response, kind);
    const took = Math.round(performance.now() - began);
    if (lastCalls.get(output) !== number) return;
    output.replaceChildren(make("p", `${options.method} ${url}`, "path"), shown);
    announce(status, `${response.status} ${response.statusText} · ${kind} · ${took} ms`, !response.ok);
  } catch (error) {
    if (lastCalls.get(output) === number) announce(status, String(error), true);
  }
}

function tryIt(root, method, path, operation, parameters, id) {
  const form = make("form");
  form.append(make("h2", "Try it"));
  const inputs = parameters.map((parameter, at) => {
    const schema = follow(root, parameter.schema) || {};
    const isList = schema.type === "array";
    const input = make(isList ? "textarea" : "input");
    input.required = Boolean(parameter.required);
    input.spellcheck = false;
    const label = parameter.name + (isList ? " (one element a line)" : "");
    field(form, `${id}-${at}`, label, input);
    return { parameter: { ...parameter, list: isList }, input };
  });
  let body = null;
  const media = operation.requestBody && follow(root, operation.requestBody);
  const json = media && media.content && media.content["application/json"];
  if (json) {
    body = make("textarea");
    body.spellcheck = false;
    body.value = JSON.stringify(sample(root, schemaOf(json), 0), null, 2);
    field(form, `${id}-body`, "Body, JSON", body);
  }
  const status = make("p");
  status.setAttribute("role", "status");
  const output = make("div");
  const button = make("button", "Send");
  button.type = "submit";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(method, path, inputs, body, status, output);
  });
  return add(form, button, status, output);
}

function inside(root, method, path, shared, operation, id) {
  const part = make("div", undefined, "inside");
  if (operation.description) part.append(make("p", operation.description, "text"));
  const parameters = [...shared, ...(operation.parameters || [])].map((one) => follow(root, one));
  if (parameters.length > 0) add(part, make("h2", "Parameters"), parametersTable(root, parameters));
  const body = operation.requestBody && follow(root, operation.requestBody);
  for (const [kind, media] of Object.entries((body && body.content) || {})) {
    const schema = schemaOf(media);
    add(part, make("h2", `Body, ${kind}`), members(root, schema), schemaBlock("Schema of the body", `Schema of the body, ${kind}`, root, schema));
  }
  part.append(make("h2", "Responses"));
  for (const [status, answer] of Object.entries(operation.responses || {})) {
    const response = follow(root, answer) || {};
    part.append(make("p", `${status}: ${response.description || ""}`));
    for (const [kind, media] of Object.entries(response.content || {})) {
      part.append(schemaBlock(kind, `Schema of ${status}, ${kind}`, root, schemaOf(media)));
    }
  }
  part.append(tryIt(root, method, path, operation, parameters, id));
  return part;
}

function operationOf(root, method, path, item, number) {
  const operation = item[method];
  const part = make("details", undefined, "operation");
  const summary = make("summary");
  add(summary, make("span", method.toUpperCase(), "method"), make("span", path, "path"));
  if (operation.summary) summary.append(make("span", operation.summary, "words"));
  part.append(summary);
  part.dataset.words = `${method} ${path} ${operation.summary || ""} ${operation.operationId || ""}`.toLowerCase();
  // The content of a closed operation is made when it is opened: a document may have thousands.
  part.addEventListener("toggle", () => {
    if (part.open && part.childElementCount === 1) {
      part.append(inside(root, method, path, item.parameters || [], operation, `operation-${number}`));
    }
  });
  return part;
}

// Returns how the document wants its credential: an API key in a header, or a bearer token.
function credentialOf(root) {
  const schemes = Object.values((root.components && root.components.securitySchemes) || {});
  const key = schemes.find((one) => one.type === "apiKey" && one.in === "header");
  if (key) return { header: key.name, prefix: "", title: "API key" };
  const bearer = schemes.find((one) => one.type === "http" && String(one.scheme).toLowerCase() === "bearer");
  return bearer ? BEARER : null;
}

function showCredential() {
  document.getElementById("credentials").hidden = credential === null;
  if (credential) document.querySelector("label[for=key]").textContent = credential.title;
}

function show(root) {
  const info = root.info || {};
  document.title = info.title || "API";
  document.getElementById("title").textContent = info.title || "API";
  document.getElementById("about").textContent = info.description || "";
  credential = credentialOf(root);
  showCredential();
  const main = document.getElementById("operations");
  let number = 0;
  for (const [path, given] of Object.entries(root.paths || {})) {
    const item = follow(root, given);
    for (const method of METHODS) {
      if (item[method]) main.append(operationOf(root, method, path, item, (number += 1)));
    }
  }
  const filter = document.getElementById("filter");
  let timer = 0;
  filter.oninput = () => {
    const sentence = filterBy(filter.value.trim().toLowerCase());
    // Only the last of several keystrokes is announced.
    clearTimeout(timer);
    const current = turn;
    timer = setTimeout(() => current === turn && showState(sentence), TYPING_MS);
  };
  showState(filterBy(filter.value.trim().toLowerCase()));
}

// Hides the operations without these words, and returns a sentence with the number of the others.
function filterBy(words) {
  const parts = [...document.querySelectorAll(".operation")];
  for (const part of parts) part.hidden = !part.dataset.words.includes(words);
  if (words) return `Operations that match: ${parts.filter((part) => !part.hidden).length} of ${parts.length}`;
  return `Operations: ${parts.length}`;
}

function showState(sentence, isWrong = false) {
  announce(document.getElementById("state"), sentence, isWrong);
}

// Removes the operations of an earlier document.
function clear() {
  document.getElementById("operations").replaceChildren();
  document.getElementById("filter").oninput = null;
}

// Returns the document. A later load of it may run by the time of the response.
async function load(current) {
  const headers = {};
  const key = document.getElementById("key").value;
  if (credential && key) headers[credential.header] = credential.prefix + key;
  const response = await fetch(document.body.dataset.document, { credentials: "same-origin", headers });
  if (response.status === 401 && current === turn) {
    credential = BEARER;
    showCredential();
    document.getElementById("key").onchange = start;
    throw new Error(key ? "the token is not valid" : "enter a token");
  }
  if (!response.ok) throw new Error(`the response to its request has status ${response.status}`);
  return response.json();
}

async function start() {
  const current = (turn += 1);
  clear();
  showState("Loading the document.");
  try {
    const root = await load(current);
    if (current === turn) show(root);
  } catch (error) {
    if (current !== turn) return;
    clear();
    showState(`The OpenAPI document cannot be shown: ${error.message}`, true);
  }
}

start();
