// The flags in the order of evaluation: a stage or percentage is changed in place, after a preview.

import { change, get, segment } from "../api.js";
import { confirmChange, nameInput, showDialog } from "../dialog.js";
import { field, freshId, h, put, toast } from "../dom.js";
import { ago, dateTime } from "../format.js";
import { historyList } from "../history.js";
import { pagedList } from "../list.js";
import { STAGES, stageBadge, stageWords } from "../sides.js";

const LIMIT = 25;
const PREVIEW_MS = 200;

function scope(flag) {
  const headers = Object.entries(flag.headers || {}).map(([name, glob]) => `${name}: ${glob}`);
  const parts = [["client", flag.client], ["route", flag.route], ["side", flag.side || "both"], ...headers.map((text) => ["header", text])];
  if (flag.holdback) parts.push(["holdback", `${flag.holdback} %`]);
  return h("dl", { class: "scope" }, parts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, h("code", {}, value)))));
}

function standing(flag) {
  const lines = [];
  if (flag.flipped) {
    const { who, at, why } = flag.flipped;
    const file = `the file says ${flag.file.stage} ${flag.file.percent} %`;
    lines.push(h("p", { class: "who" }, "Changed by ", h("strong", {}, who), " ", h("time", { datetime: at, title: dateTime(at) }, ago(at)), why && `: ${why}`, h("span", { class: "faint" }, ` (${file})`)));
  }
  if (flag.guard && !flag.tripped) lines.push(h("p", { class: "faint" }, `Guard: ${flag.guard}`));
  if (flag.ramp) lines.push(h("p", { class: "faint" }, `Ramp: step ${flag.ramp.step} of ${flag.ramp.steps}`));
  return lines;
}

// The inputs of one flag. An edit keeps the version that the person has seen, so that a lost race is noticed.
class FlagEditor {
  constructor(flag, position, reload) {
    this.reload = reload;
    this.position = position;
    this.seen = flag;
    // The number of the last edit or request: what belongs to an earlier one is dropped.
    this.turn = 0;
    this.element = h("article", { class: "flag panel", "aria-labelledby": freshId("flag") });
    this.draw();
  }

  get isEdited() {
    return this.stage.value !== this.seen.stage || this.percent.value !== String(this.seen.percent);
  }

  draw(stage = this.seen.stage, percent = this.seen.percent) {
    const flag = this.seen;
    const title = this.element.getAttribute("aria-labelledby");
    this.stage = h("select", { "aria-label": `Stage of ${flag.name}`, onchange: () => this.edited() },
      STAGES.map((name) => h("option", { value: name, selected: name === stage }, name)));
    this.percent = h("input", { type: "number", min: 0, max: 100, step: "any", value: String(percent), "aria-label": `Percentage of ${flag.name}`, oninput: () => this.edited() });
    this.slider = h("input", { type: "range", min: 0, max: 100, value: String(percent), "aria-label": `Percentage of ${flag.name}, slider`, oninput: () => this.slid() });
    this.panel = h("div", { class: "edit", hidden: true });
    put(this.element,
      h("header", {}, h("span", { class: "position", title: "Place in the order of evaluation" }, String(this.position)),
        h("h2", { id: title }, flag.name), stageBadge(flag.stage), h("span", { class: "percent" }, `${flag.percent} %`),
        flag.tripped && h("span", { class: "badge error" }, "tripped")),
      scope(flag),
      flag.tripped && h("p", { class: "notice error" }, `The guard tripped the flag ${ago(flag.tripped.at)}: ${flag.tripped.reason}. It decides nothing until it is re-armed.`),
      ...standing(flag),
      h("div", { class: "controls" }, this.stage, this.slider, h("span", { class: "with-unit" }, this.percent, "%"), h("div", { class: "actions" }, this.actions())),
      this.panel);
  }

  actions() {
    const flag = this.seen;
    const button = (text, act, isHidden) => !isHidden && h("button", { type: "button", class: "quiet", onclick: act, "aria-label": `${text} ${flag.name}` }, text);
    return [
      button("Re-arm", () => this.rearm(), !flag.tripped),
      button("Undo", () => this.act("POST", "/undo", "Undo the last change?", "The flag returns to the values before it.")),
      button("Reset to file", () => this.act("DELETE", "", "Reset to the flags file?", `The flag returns to ${flag.file.stage} ${flag.file.percent} %.`), !flag.flipped),
      button("History", () => showDialog(`History of ${flag.name}`, historyList(flag.name))),
    ];
  }

  slid() {
    this.percent.value = this.slider.value;
    this.edited();
  }

  edited() {
    clearTimeout(this.timer);
    this.turn += 1;
    if (this.percent.value !== "") this.slider.value = this.percent.value;
    if (!this.isEdited) {
      this.panel.hidden = true;
      return;
    }
    if (this.panel.hidden) this.openPanel();
    this.apply.disabled = true;
    if (this.percent.value === "") {
      this.say("Enter a percentage from 0 to 100.", true);
      return;
    }
    this.timer = setTimeout(() => this.preview(), PREVIEW_MS);
  }

  openPanel() {
    this.sentence = h("p", { class: "preview", role: "status" }, "…");
    this.more = h("ul", { class: "problems" });
    this.why = h("input", { maxlength: 500, autocomplete: "off" });
    this.apply = h("button", { type: "submit", class: "primary", disabled: true }, "Apply");
    const discard = h("button", { type: "button", class: "quiet", onclick: () => this.draw() }, "Discard");
    const form = h("form", { onsubmit: (event) => { event.preventDefault(); this.send(); } },
      this.sentence, this.more, h("div", { class: "sign" }, field("Why", this.why), field("Who", nameInput())), h("p", { class: "buttons" }, discard, this.apply));
    this.panel.replaceChildren(form);
    this.panel.hidden = false;
  }

  async preview() {
    const turn = (this.turn += 1);
    const values = { stage: this.stage.value, percent: this.percent.value };
    try {
      const preview = await get(`flags/${segment(this.seen.name)}/preview`, values);
      if (turn === this.turn) this.say(preview.faults.length > 0 ? `Not possible: ${preview.faults.join("; ")}.` : preview.text, preview.faults.length > 0);
    } catch (error) {
      if (turn === this.turn) this.say(error.message, true);
    }
  }

  // Shows a sentence, which a screen reader announces, and further problems below it.
  say(text, isWrong, more = []) {
    this.sentence.textContent = text;
    put(this.more, more.map((problem) => h("li", {}, problem)));
    this.sentence.classList.toggle("wrong", isWrong);
    this.apply.disabled = isWrong;
  }

  async send() {
    this.apply.disabled = true;
    this.turn += 1;
    const body = { stage: this.stage.value, percent: Number(this.percent.value), why: this.why.value.trim() };
    try {
      this.seen = await change("PUT", `flags/${segment(this.seen.name)}`, body, this.seen.tag);
      this.draw();
      toast(`${this.seen.name} is ${this.seen.stage} ${this.seen.percent} % on every worker.`);
    } catch (error) {
      if (error.status === 412) await this.lost(body);
      else {
        const [first, ...more] = error.problems.map((one) => [one.message, one.hint].filter(Boolean).join("; "));
        this.say(first ? `${error.message}: ${first}` : error.message, false, more);
      }
    }
  }

  // Another change was faster: it is shown, and nothing is overwritten.
  async lost(mine) {
    let theirs;
    try {
      theirs = await get(`flags/${segment(this.seen.name)}`);
    } catch (error) {
      this.say(`Your change was not applied: the flag was changed meanwhile. Its new values cannot be read: ${error.message}`, false);
      return;
    }
    this.seen = theirs;
    this.draw(mine.stage, mine.percent);
    const by = theirs.flipped ? `${theirs.flipped.who}${theirs.flipped.why ? ` (${theirs.flipped.why})` : ""}` : theirs.tripped ? "its guard" : "somebody";
    const notice = h("div", { class: "notice warning", role: "alert" },
      h("p", {}, h("strong", {}, "Your change was not applied."), ` The flag was changed meanwhile by ${by}: it is now ${theirs.stage} ${theirs.percent} %. You wanted ${mine.stage} ${mine.percent} %.`));
    this.openPanel();
    this.why.value = mine.why || "";
    this.apply.textContent = "Apply to the new version";
    this.panel.prepend(notice);
    this.preview();
  }

  async act(method, path, title, text) {
    // The version that the person confirms: a newer one may be drawn while the dialog is open.
    const { name, tag } = this.seen;
    const why = await confirmChange({ title, text, action: title.split(" ")[0] });
    if (why === null) return;
    try {
      this.seen = await change(method, `flags/${segment(name)}${path}`, { why }, tag);
      this.draw();
      toast(`${this.seen.name} is ${this.seen.stage} ${this.seen.percent} %.`);
    } catch (error) {
      toast(error.status === 412 ? "The flag was changed meanwhile. Nothing was done; look at it again." : error.message, "error");
      this.reload();
    }
  }

  rearm() {
    return this.act("POST", "/rearm", "Re-arm the flag?", `It decides again: ${this.seen.stage} for ${this.seen.percent} % (${stageWords(this.seen.stage)}). Its guard starts anew.`);
  }

  // Takes a newer version, unless the person is editing or in it.
  update(flag, position) {
    const isBusy = this.isEdited || this.element.contains(document.activeElement);
    if (isBusy || (flag.tag === this.seen.tag && flag.guard === this.seen.guard && position === this.position)) return;
    this.seen = flag;
    this.position = position;
    this.draw();
  }
}

export function flagsPage(address) {
  const editors = new Map();
  const list = pagedList({
    noun: "flags", limit: LIMIT, first: address.query.get("search"),
    load: async (query) => {
      const page = await get("flags", query);
      return { total: page.total, offset: page.offset, items: page.flags, positions: page.positions };
    },
    show: (flags, page) => {
      for (const name of editors.keys()) if (!flags.some((flag) => flag.name === name)) editors.delete(name);
      return flags.map((flag, at) => {
        const known = editors.get(flag.name);
        if (known) known.update(flag, page.positions[at]);
        else editors.set(flag.name, new FlagEditor(flag, page.positions[at], list.refresh));
        return editors.get(flag.name).element;
      });
    },
    empty: "The flags file has no flags: every call has its default stage.",
  });
  const all = h("button", { type: "button", class: "quiet", onclick: () => showDialog("History of all changes", historyList(null, list.refresh)) }, "All changes");
  const element = h("div", {}, h("div", { class: "title" }, h("h1", {}, "Flags"), all),
    h("p", { class: "faint" }, "The first flag that matches a call decides its stage."), list.element);
  return { title: "Flags", element, start: list.refresh, changed: list.refreshIfIdle };
}
