// Searchable lists in pages, so that no page of the console has more than a hundred rows.

import { h, freshId, announce } from "./dom.js";
import { count } from "./format.js";

const TYPING_MS = 250;
// Buttons that can be found again after their row is drawn anew.
const NAMED_BUTTON = "button[aria-label]";

// `load(query)` returns { total, offset, items }; `show(items)` returns the elements, and `empty` is a text or an element.
export function pagedList({ noun, limit, load, show, empty, controls = [], first = "" }) {
  const state = { search: first || "", offset: 0, timer: 0, turn: 0 };
  // A change was not shown, because the list was in use.
  let isLate = false;
  const searchId = freshId("search");
  const search = h("input", { id: searchId, type: "search", autocomplete: "off", spellcheck: "false", value: first || "" });
  const position = h("span", { class: "faint", role: "status" });
  const body = h("div", { class: "list-body" });
  const previous = h("button", { type: "button", class: "quiet", "aria-label": `Previous ${noun}`, onclick: () => move(-limit) }, "‹ Previous");
  const next = h("button", { type: "button", class: "quiet", "aria-label": `Next ${noun}`, onclick: () => move(limit) }, "Next ›");
  const pager = h("div", { class: "pager" }, previous, position, next);

  async function refresh() {
    const turn = (state.turn += 1);
    let page;
    try {
      page = await load({ search: state.search, offset: state.offset, limit });
    } catch (error) {
      if (turn !== state.turn) return;
      announce(position, `The ${noun} cannot be read.`);
      body.replaceChildren(h("p", { class: "notice error" }, error.message));
      return;
    }
    // An answer that a later one has overtaken is dropped.
    if (turn !== state.turn) return;
    if (page.items.length === 0 && state.offset > 0) {
      state.offset = 0;
      await refresh();
      return;
    }
    const last = page.offset + page.items.length;
    announce(position, page.total === 0 ? `no ${noun}` : `${count(page.offset + 1)}–${count(last)} of ${count(page.total)} ${noun}`);
    previous.disabled = page.offset === 0;
    next.disabled = last >= page.total;
    const nothing = state.search ? `No ${noun} contain “${state.search}”.` : empty;
    const none = typeof nothing === "string" ? h("p", { class: "faint" }, nothing) : nothing;
    isLate = false;
    keepingFocus(body, () => {
      body.replaceChildren(...(page.items.length > 0 ? [show(page.items, page)].flat() : [none].flat()));
    });
  }

  function move(by) {
    state.offset = Math.max(0, state.offset + by);
    refresh();
  }

  // Enter would close a dialog around the list.
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault();
  });
  search.addEventListener("input", () => {
    clearTimeout(state.timer);
    state.timer = setTimeout(() => {
      state.search = search.value.trim();
      state.offset = 0;
      // The same number of items for another search is announced again.
      position.textContent = "";
      refresh();
    }, TYPING_MS);
  });

  const bar = h("div", { class: "list-bar" }, h("label", { for: searchId }, `Search ${noun}`), search, controls, pager);
  const element = h("div", { class: "list" }, bar, body);
  // A list is not redrawn while one of its fields has the focus. It is redrawn when the focus leaves the list.
  const isInUse = () => body.contains(document.activeElement) && !document.activeElement.matches(NAMED_BUTTON);
  const refreshIfIdle = () => {
    isLate = isInUse();
    return isLate ? undefined : refresh();
  };
  body.addEventListener("focusout", () => setTimeout(() => isLate && refreshIfIdle()));
  return { element, bar, refresh, refreshIfIdle };
}

// A list of items that the page has already; `text(item)` is searched. A short one has no search.
export function localList({ noun, limit, text, show, empty }) {
  let items = [];
  let drawn = null;
  const load = async ({ search, offset }) => {
    list.bar.hidden = search === "" && items.length <= limit;
    const found = items.filter((item) => text(item).toLowerCase().includes(search.toLowerCase()));
    return { total: found.length, offset, items: found.slice(offset, offset + limit) };
  };
  const list = pagedList({ noun, limit, load, show, empty });
  list.bar.hidden = true;

  // Equal items are not drawn again: that would close what a person has opened.
  function set(next) {
    const key = JSON.stringify(next);
    if (key === drawn) return;
    drawn = key;
    items = next;
    list.refreshIfIdle();
  }

  return { element: list.element, set };
}

// Draws rows anew, and returns the focus to the button with the same name.
function keepingFocus(body, draw) {
  const focused = body.contains(document.activeElement) ? document.activeElement : null;
  const name = focused?.matches(NAMED_BUTTON) ? focused.getAttribute("aria-label") : null;
  draw();
  if (name === null || body.contains(document.activeElement)) return;
  const again = [...body.querySelectorAll(NAMED_BUTTON)].find((button) => button.getAttribute("aria-label") === name);
  again?.focus({ preventScroll: true });
}
