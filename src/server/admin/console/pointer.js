// The places of differences, given as JSON pointers, drawn as the JSON texts around them.
//
// A report has the differing values only, so everything else of a response is written as "…".

const MORE = Symbol("more");

function parts(pointer) {
  return pointer.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

// Returns a tree of the places; each leaf is a difference.
function tree(differences) {
  const root = new Map();
  for (const difference of differences) {
    const path = parts(difference.pointer);
    let node = root;
    path.forEach((part, at) => {
      const isLeaf = at === path.length - 1;
      if (!(node.get(part) instanceof Map)) node.set(part, isLeaf ? difference : new Map());
      else if (isLeaf) node.get(part).set(MORE, difference);
      node = node.get(part);
      if (!(node instanceof Map)) node = new Map();
    });
  }
  return root;
}

const isIndex = (name) => /^\d+$/.test(name);

function label(name) {
  return isIndex(name) ? `[${name}] ` : `${JSON.stringify(name)}: `;
}

// Adds the lines of a node. A line is { indent, text: [control, candidate], kind }.
function write(node, indent, lines) {
  for (const [name, value] of node) {
    if (name === MORE) {
      lines.push({ indent, text: [value.control, value.candidate], kind: value.kind });
    } else if (value instanceof Map) {
      const isList = [...value.keys()].every((key) => key === MORE || isIndex(key));
      const [open, close] = isList ? ["[", "]"] : ["{", "}"];
      lines.push({ indent, text: [`${label(name)}${open}`, `${label(name)}${open}`] });
      write(value, indent + 1, lines);
      lines.push({ indent: indent + 1, text: ["…", "…"], isRest: true });
      lines.push({ indent, text: [close, close] });
    } else {
      lines.push({ indent, text: [`${label(name)}${value.control}`, `${label(name)}${value.candidate}`], kind: value.kind });
    }
  }
}

// Returns the lines of both responses, side by side, for the differences of one call.
export function sideBySide(differences) {
  const lines = [];
  write(tree(differences), 0, lines);
  return lines;
}
