// A searchable list in pages, so that the page never has more than a hundred rows.

import { h, freshId } from "./dom.js";
import { count } from "./format.js";

const TYPING_MS = 250;

// `load(query)` returns { total, offset, items }; `show(items)` returns the elements.
export function pagedList({ noun, limit, load, show, empty, controls = [], first = "" }) {
  const state = { search: first || "", offset: 0, timer: 0, turn: 0 };
  const searchId = freshId("search");
  const search = h("input", { id: searchId, type: "search", autocomplete: "off", spellcheck: "false", value: first || "" });
  const position = h("span", { class: "faint", role: "status" });
  const body = h("div", { class: "list-body" });
  const previous = h("button", { type: "button", class: "quiet", onclick: () => move(-limit) }, "‹ Previous");
  const next = h("button", { type: "button", class: "quiet", onclick: () => move(limit) }, "Next ›");
  const pager = h("div", { class: "pager" }, previous, position, next);

  async function refresh() {
    const turn = (state.turn += 1);
    let page;
    try {
      page = await load({ search: state.search, offset: state.offset, limit });
    } catch (error) {
      if (turn === state.turn) body.replaceChildren(h("p", { class: "notice error" }, error.message));
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
    position.textContent = page.total === 0 ? `no ${noun}` : `${count(page.offset + 1)}–${count(last)} of ${count(page.total)} ${noun}`;
    previous.disabled = page.offset === 0;
    next.disabled = last >= page.total;
    const nothing = state.search ? `No ${noun} contain “${state.search}”.` : empty;
    body.replaceChildren(...(page.items.length > 0 ? [show(page.items, page)].flat() : [h("p", { class: "faint" }, nothing)]));
  }

  function move(by) {
    state.offset = Math.max(0, state.offset + by);
    refresh();
  }

  search.addEventListener("input", () => {
    clearTimeout(state.timer);
    state.timer = setTimeout(() => {
      state.search = search.value.trim();
      state.offset = 0;
      refresh();
    }, TYPING_MS);
  });

  const bar = h("div", { class: "list-bar" }, h("label", { for: searchId }, `Search ${noun}`), search, controls, pager);
  const element = h("div", { class: "list" }, bar, body);
  // While somebody is in the list, it does not move under their hands.
  const isInUse = () => body.contains(document.activeElement);
  return { element, refresh, refreshIfIdle: () => (isInUse() ? undefined : refresh()) };
}
