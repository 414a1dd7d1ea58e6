// JSON as text: values keep their spelling, since JavaScript would round long numbers.

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;
const CLOSE = { "{": "}", "[": "]" };
const WIDTH = 60;

// Parses a JSON text, whose numbers are spelled alike when they are written again.
export function parseExactly(text) {
  return JSON.parse(text, (_, value, context) => {
    const isRounded = typeof value === "number" && context && String(value) !== context.source;
    return isRounded ? JSON.rawJSON(context.source) : value;
  });
}

// Lays out a JSON text in lines. Other text stays as it is.
export function pretty(text) {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const tokens = text.match(TOKEN);
  let at = 0;

  function value(indent) {
    const open = tokens[at++];
    const close = CLOSE[open];
    if (!close) return open;
    const members = [];
    while (tokens[at] !== close) {
      let name = "";
      if (open === "{") {
        name = `${tokens[at]}: `;
        at += 2;
      }
      members.push(name + value(`${indent}  `));
      if (tokens[at] === ",") at += 1;
    }
    at += 1;
    const line = `${open}${members.join(", ")}${close}`;
    if (!line.includes("\n") && indent.length + line.length <= WIDTH) return line;
    return `${open}\n${members.map((member) => `${indent}  ${member}`).join(",\n")}\n${indent}${close}`;
  }

  return value("");
}
