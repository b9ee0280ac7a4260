// Blocks whose pictures follow menus, the table that sorts, and pictures to save.
const option = (value, words) => el("option", { value }, words);

// A menu of axes under the headings of their groups.
function axisMenu(label, choices, chosen) {
  const groups = [...new Set(choices.map((at) => axes[at].group))];
  const select = el("select", { "aria-label": label }, groups.map((group) => el("optgroup", { label: group }, choices.filter((at) => axes[at].group === group).map((at) => option(at, axes[at].name)))));
  select.value = String(chosen);
  return { select, node: el("label", {}, label, select) };
}

function wordMenu(label, words) {
  const select = el("select", { "aria-label": label }, words.map((word) => option(word, word)));
  return { select, node: el("label", {}, label, select) };
}

// One plot that is drawn again when a menu changes; `make` gives the figure and a sentence on it.
function following(id, menus, make) {
  const panel = { hidden: new Set(), plot: el("div", { class: "plot free", id: `${id}-plot`, role: "img" }), legend: el("div", { class: "names" }), says: el("p", { class: "says", "aria-live": "polite" }) };
  const update = () => {
    const { figure, words } = make(...menus.map(({ select }) => select.value));
    panel.figure = figure;
    panel.says.textContent = words;
    panel.plot.setAttribute("aria-label", words);
    legend(panel);
  };
  panel.update = () => { update(); drawPanel(panel); };
  for (const { select } of menus) select.addEventListener("change", panel.update);
  panels.push(panel);
  update();
  return { panel, node: el("div", {}, el("div", { class: "menus" }, menus.map((menu) => menu.node)), panel.plot, panel.says, panel.legend) };
}

const about = (axis, against) => {
  const { n, rho } = correlation(axis.values, against.values);
  return `${axis.name} against ${against.name}, ${n} architectures. ${axis.facts || `Spearman ${decimal(rho)}`}.`;
};

function onePanel(axis, against, extra = {}) {
  return { traces: cloud(axis.values, against.values), x: axisOf(axis.name, axis.values), y: axisOf(against.name, against.values), ...extra };
}

function thumb(at, against, menu) {
  const canvas = el("canvas", { width: 264, height: 152, "aria-hidden": "true" });
  const button = el("button", { type: "button", "aria-pressed": "false", title: axes[at].name }, canvas, el("span", {}, axes[at].name), el("span", {}, `ρ ${decimal(correlation(axes[at].values, against.values).rho)}`));
  button.addEventListener("click", () => { menu.select.value = String(at); menu.select.dispatchEvent(new Event("change")); });
  sketch(canvas, axes[at].values, against.values);
  return button;
}

// A small picture of all points; on x their ranks, so that no outlier hides the others.
function sketch(canvas, values, against) {
  const pen = canvas.getContext("2d");
  const [xs] = ranksAmong(values, against);
  const ys = against.filter(known);
  const [low, high, most] = [Math.min(...ys), Math.max(...ys), Math.max(...xs.filter(known), 1)];
  for (const { colour, members } of points.groups) {
    pen.fillStyle = colour;
    for (const at of places(xs, against, members)) pen.fillRect(6 + 248 * (xs[at] / most), 144 - 136 * ((against[at] - low) / (high - low || 1)), 5, 5);
  }
}

BLOCKS.scatter = ({ choices, against, chosen }, id) => {
  const menu = axisMenu("Proxy", choices, chosen);
  const thumbs = choices.map((at) => thumb(at, axes[against], menu));
  const { node } = following(id, [menu], (at) => {
    thumbs.forEach((button, place) => button.setAttribute("aria-pressed", String(choices[place] === Number(at))));
    return { figure: drawn([onePanel(axes[at], axes[against])], { columns: 1, height: 440 }), words: about(axes[at], axes[against]) };
  });
  node.append(el("div", { class: "thumbs", role: "group", "aria-label": "All proxies" }, thumbs));
  return node;
};

BLOCKS.cells = ({ choices, against, chosen }, id) => following(id, [axisMenu("Proxy", choices, chosen)], (at) => {
  const [axis, other] = [axes[at], axes[against]];
  const parts = points.cells.map(({ name, members }) => {
    const { n, rho } = correlation(axis.values, other.values, members);
    return onePanel(axis, other, { title: `${name}: ρ ${decimal(rho)}, n ${n}`, traces: cloud(axis.values, other.values, { only: members, size: 6, named: false }), y: axisOf(other.name, other.values) });
  });
  return { figure: drawn(parts, { columns: parts.length === 4 ? 2 : 3, height: 290 }), words: `${axis.name} within ${parts.length} cells. ${axis.facts}.` };
}).node;

BLOCKS.sides = ({ pairs, against }, id) => {
  const menu = axisMenu("Proxy", pairs.map(([raw]) => raw), pairs[0][0]);
  return following(id, [menu], (at) => {
    const [raw, normalised] = pairs.find(([first]) => first === Number(at)).map((place) => axes[place]);
    const part = (axis, words) => onePanel(axis, axes[against], { title: `${words}: ρ ${decimal(correlation(axis.values, axes[against].values).rho)}` });
    return { figure: drawn([part(raw, "raw"), part(normalised, "normalised")], { height: 380 }), words: `${raw.name} and ${normalised.name}.` };
  }).node;
};

BLOCKS.pair = ({ x, y }, id) => {
  const all = axes.map((_, at) => at);
  return following(id, [axisMenu("Across", all, x), axisMenu("Upwards", all, y)], (across, up) => {
    const [one, two] = [axes[across], axes[up]];
    const [xs, ys] = ranksAmong(one.values, two.values);
    const { n, rho } = correlation(one.values, two.values);
    const ranks = { title: "ranks", traces: cloud(xs, ys), x: axisOf(`rank of ${one.name}`, []), y: axisOf(`rank of ${two.name}`, []) };
    return { figure: drawn([onePanel(one, two, { title: "scores" }), ranks], { height: 400 }), words: `${one.name} and ${two.name}: Spearman ${decimal(rho)} over ${n} architectures.` };
  }).node;
};

// Figures made beforehand, chosen by their words; where a combination is missing, the nearest one is shown.
BLOCKS.menus = ({ figures, labels }, id) => {
  const menus = labels.map((label, place) => wordMenu(label, [...new Set(figures.map(([words]) => words[place]))]));
  return following(id, menus, (...wanted) => {
    const score = ([words]) => words.filter((word, place) => word === wanted[place]).length + (words[0] === wanted[0] ? 1 : 0);
    const [words, figure] = [...figures].sort((a, b) => score(b) - score(a))[0];
    return { figure, words: `${words.join(", ")}.` };
  }).node;
};

// Numbers sort as numbers, names as names; what is missing stays at the end.
function compare(a, b, rising) {
  if (a === null || b === null || a === undefined || b === undefined) return (known(b) || typeof b === "string") - (known(a) || typeof a === "string");
  const order = typeof a === "string" ? a.localeCompare(b) : a - b;
  return rising ? order : -order;
}

function sortBy(button, body, place) {
  const head = button.parentNode;
  const numbers = known(body.rows[0]?.cells[place].sortValue);
  const rising = head.hasAttribute("aria-sort") ? head.getAttribute("aria-sort") !== "ascending" : !numbers;
  for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", rising ? "ascending" : "descending");
  body.append(...[...body.rows].sort((one, two) => compare(one.cells[place].sortValue, two.cells[place].sortValue, rising)));
}

// Long names may break after an underscore.
const breakable = (words) => words.split(/(?<=_)/).flatMap((part, at) => (at ? [el("wbr"), part] : [part]));

const looksOf = ({ left, words }) => ({ class: `${left ? "left" : ""} ${words ? "words" : ""}`.trim() });

function sortableCell({ text: words, range = "", value }, head) {
  const cell = el("td", looksOf(head), breakable(words), range ? el("span", { class: "range" }, range) : []);
  cell.sortValue = value;
  return cell;
}

BLOCKS.sortable = ({ name, head, rows }) => {
  const body = el("tbody", {}, rows.map(({ cells, base }) => el("tr", base ? { class: "base" } : {}, cells.map((cell, place) => sortableCell(cell, head[place])))));
  const heads = head.map((own, place) => {
    const button = el("button", { type: "button", ...(own.note ? { title: own.note } : {}) }, own.text);
    button.addEventListener("click", () => sortBy(button, body, place));
    return el("th", { scope: "col", ...looksOf(own) }, button);
  });
  const filter = el("input", { type: "search", placeholder: "Filter", "aria-label": `Filter: ${name}` });
  filter.addEventListener("input", () => { for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(filter.value.toLowerCase()); });
  return el("div", {}, rows.length > 10 ? el("div", { class: "filter" }, filter) : [],
    el("div", { class: "scroll sorted", tabindex: "0", role: "region", "aria-label": name }, el("table", {}, el("thead", {}, el("tr", {}, heads)), body)));
};

// Every plot as a PNG of twice its size, on the colour of its card.
async function save({ plot }) {
  const { data: traces, layout, clientWidth: width, clientHeight: height, id } = plot;
  const picture = new Image();
  picture.src = await Plotly.toImage({ data: traces, layout: { ...layout, paper_bgcolor: style("--card") } }, { format: "svg", width, height });
  await picture.decode();
  const canvas = el("canvas", { width: 2 * width, height: 2 * height });
  canvas.getContext("2d").drawImage(picture, 0, 0, 2 * width, 2 * height);
  el("a", { href: canvas.toDataURL("image/png"), download: `${id}.png` }).click();
}

function startSaving() {
  for (const panel of panels) {
    const button = el("button", { class: "save", type: "button", "aria-label": "Save this plot as PNG" }, "PNG");
    button.addEventListener("click", () => save(panel));
    panel.plot.after(button);
  }
}
document.addEventListener("DOMContentLoaded", startSaving);
