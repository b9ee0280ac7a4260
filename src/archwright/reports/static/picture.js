// The picture of one sub-network: per layer its heads as cells and its units as a bar, against the full size.
const GAP = 3;

function layerPicture(keep, { heads, units, wide }) {
  const deep = keep.length > 12;
  const row = wide ? (deep ? 14 : 20) : deep ? 9 : 13;
  const width = wide ? 284 : 170;
  const left = 16;
  const middle = left + (width - left) * (wide ? 0.42 : 0.48);
  const right = wide ? width - 36 : width - 1;
  const picture = svg("svg", { class: "stack", viewBox: `0 0 ${width} ${keep.length * row + 14}`, role: "img" });
  picture.append(svg("title", {}, description(keep, heads, units)));
  picture.append(label(left, 9, "heads"), label(middle + 6, 9, "units"));
  keep.forEach(([h, u], index) => {
    const top = 14 + index * row;
    picture.append(label(0, top + row / 2 + 2, String(index + 1)));
    const box = { top, height: row - GAP };
    const parts = h === 0 && u === 0
      ? goneLayer(left, right, box)
      : [...headCells(h, heads, left, middle, box), ...unitBar(u, units, middle + 6, right, box, wide)];
    const ground = svg("rect", { class: "ground", x: 0, y: top, width, height: row });
    picture.append(svg("g", {}, svg("title", {}, layerWords([h, u], index, heads, units)), ground, ...parts));
  });
  return picture;
}

function label(x, y, content) {
  return svg("text", { x, y }, content);
}

function goneLayer(left, right, { top, height }) {
  const y = top + height / 2;
  const middle = (left + right) / 2;
  const word = svg("text", { x: middle, y: y + 3, "text-anchor": "middle" }, "gone");
  return [[left, middle - 16], [middle + 16, right]]
    .map(([x1, x2]) => svg("line", { class: "gone", x1, x2, y1: y, y2: y })).concat(word);
}

function headCells(kept, full, left, right, { top, height }) {
  if (kept === 0) return [svg("line", { class: "gone", x1: left, x2: right, y1: top + height / 2, y2: top + height / 2 })];
  const cell = (right - left) / full;
  const inset = Math.min(1, cell * 0.12);
  return Array.from({ length: full }, (_, index) => svg("rect", {
    class: index < kept ? "kept" : "full", x: left + index * cell + inset, y: top + 0.5,
    width: Math.max(cell - 2 * inset, 0.5), height: height - 1, rx: 1,
  }));
}

function unitBar(kept, full, left, right, { top, height }, wide) {
  const word = wide ? [label(right + 6, top + height / 2 + 3, kept === 0 ? "none" : text(kept))] : [];
  if (kept === 0) return [svg("line", { class: "gone", x1: left, x2: right, y1: top + height / 2, y2: top + height / 2 }), ...word];
  const share = full ? Math.min((kept || 0) / full, 1) : 0;
  return [
    svg("rect", { class: "full", x: left, y: top + 0.5, width: right - left, height: height - 1, rx: 1 }),
    svg("rect", { class: "units", x: left, y: top + 0.5, width: share * (right - left), height: height - 1, rx: 1 }),
    ...word,
  ];
}

const description = (keep, heads, units) => keep.map((layer, index) => layerWords(layer, index, heads, units)).join("; ");

function layerWords([h, u], index, heads, units) {
  return h === 0 && u === 0 ? `layer ${index + 1}: gone` : `layer ${index + 1}: ${text(h)} of ${heads} heads, ${text(u)} of ${units} units`;
}

// A command line to copy; it breaks between words only, so that an option stays whole.
function commandLine(line) {
  return el("code", {}, line.split(" ").flatMap((word, index) => [index ? " " : "", el("span", {}, word)]));
}

function command(line) {
  const button = el("button", { class: "copy", type: "button", "aria-label": `Copy: ${line}` }, "copy");
  const code = commandLine(line);
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(code);
    button.textContent = (await copied(line)) ? "copied" : "selected";
  });
  return el("div", { class: "command" }, code, button);
}

async function copied(line) {
  try {
    await navigator.clipboard.writeText(line);
    return true;
  } catch {
    return document.execCommand("copy");
  }
}
