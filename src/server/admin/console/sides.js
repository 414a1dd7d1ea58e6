// Stages and sides, as all pages name and draw them.

import { h } from "./dom.js";
import { share } from "./format.js";

export const STAGES = ["passthrough", "shadow", "verify", "translate", "retired"];

const WORDS = {
  passthrough: "the old side answers",
  shadow: "the old side answers; the new side is compared",
  verify: "the new side answers; the old side is compared",
  translate: "the new side answers",
  retired: "calls are refused",
};

export function stageName(stage) {
  return stage[0].toUpperCase() + stage.slice(1);
}

export function stageBadge(stage) {
  return h("span", { class: `stage ${stage}`, title: WORDS[stage] }, stage);
}

export function stageWords(stage) {
  return WORDS[stage];
}

// A bar with a part for each stage that has calls.
export function stageBar(stages) {
  const all = STAGES.reduce((calls, stage) => calls + stages[stage], 0);
  if (all === 0) return h("span", { class: "faint" }, "no calls");
  const used = STAGES.filter((stage) => stages[stage] > 0);
  const words = used.map((stage) => `${stage} ${share(stages[stage], all)}`).join(", ");
  const parts = used.map((stage) => {
    const part = h("span", { class: `part ${stage}` });
    part.style.setProperty("flex-grow", String(stages[stage]));
    return part;
  });
  return h("span", { class: "stage-bar" }, h("span", { class: "bar", "aria-hidden": "true" }, parts), h("span", { class: "bar-words" }, words));
}
