// Ranks and their correlation, for the points that a reader has chosen.
const places = (xs, ys, members) => members.filter((at) => known(xs[at]) && known(ys[at]));

// Equal values share the mean of their ranks; 1 is the smallest.
function ranksOf(values) {
  const order = values.map((_, at) => at).sort((a, b) => values[a] - values[b]);
  const ranks = new Array(values.length);
  for (let start = 0; start < order.length;) {
    let end = start;
    while (end + 1 < order.length && values[order[end + 1]] === values[order[start]]) end += 1;
    for (let at = start; at <= end; at += 1) ranks[order[at]] = (start + end) / 2 + 1;
    start = end + 1;
  }
  return ranks;
}

function pearson(xs, ys) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [mx, my] = [mean(xs), mean(ys)];
  const sum = (term) => xs.reduce((total, _, at) => total + term(xs[at] - mx, ys[at] - my), 0);
  const spread = Math.sqrt(sum((x) => x * x) * sum((_, y) => y * y));
  return xs.length > 2 && spread > 0 ? sum((x, y) => x * y) / spread : null;
}

const spearman = (xs, ys) => pearson(ranksOf(xs), ranksOf(ys));
const decimal = (value) => (known(value) ? value.toFixed(2).replace("-", "−") : DASH);

// Architectures as points: traces by depth, and figures of the same shape as those of figures/parts.py.
const { axes = [], points = { hover: [], cells: [], groups: [] } } = data;
const everyone = points.hover.map((_, at) => at);
const markup = (words) => String(words).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const DEPTHS = [[0, "#f2b134"], [0.5, "#3f9b8f"], [1, "#8a6fe0"]];

function cloud(xs, ys, { size = 7, only = everyone, named = true } = {}) {
  const chosen = new Set(only);
  return points.groups.map(({ name, colour, symbol, members, shade }) => {
    const own = places(xs, ys, members).filter((at) => chosen.has(at));
    const scale = shade ? { color: own.map((at) => shade[at]), colorscale: DEPTHS, cmin: Math.min(...shade.filter(known)), cmax: Math.max(...shade.filter(known)), showscale: named, colorbar: { thickness: 10, outlinewidth: 0, title: { text: name } } } : { color: colour };
    return {
      type: "scatter", mode: "markers", x: own.map((at) => xs[at]), y: own.map((at) => ys[at]), text: own.map((at) => markup(points.hover[at])),
      marker: { size, symbol, opacity: 0.72, ...scale }, hovertemplate: "%{text}<br>%{x:.4~g}, %{y:.4~g}<extra></extra>",
      name: markup(name), legendgroup: shade ? "" : markup(name), showlegend: !shade && named,
    };
  });
}

function correlation(xs, ys, members = everyone) {
  const both = places(xs, ys, members);
  return { n: both.length, rho: spearman(both.map((at) => xs[at]), both.map((at) => ys[at])) };
}

// Ranks among the architectures that have both numbers.
function ranksAmong(xs, ys) {
  const both = places(xs, ys, everyone);
  const ranks = (values) => { const found = ranksOf(both.map((at) => values[at])); const all = values.map(() => null); both.forEach((at, place) => { all[at] = found[place]; }); return all; };
  return [ranks(xs), ranks(ys)];
}

// Values of many sizes, all positive, are easier to see on a logarithmic axis.
function scaleOf(values) {
  const numbers = values.filter(known);
  return numbers.length && Math.min(...numbers) > 0 && Math.max(...numbers) > 1000 * Math.min(...numbers) ? "log" : "linear";
}

const axisOf = (words, values) => ({ title: { text: markup(words) }, type: scaleOf(values), nticks: 6, exponentformat: "SI" });

function drawn(parts, { columns = 2, height = 420, width = 0 } = {}) {
  const layout = { grid: { pattern: "independent" }, meta: { panels: parts.length, columns: Math.min(columns, parts.length), height, width }, annotations: [], shapes: [] };
  const traces = parts.flatMap(({ title, traces: own, x, y }, place) => {
    const end = place ? place + 1 : "";
    layout[`xaxis${end}`] = x;
    layout[`yaxis${end}`] = y;
    if (title) layout.annotations.push({ text: `<b>${markup(title)}</b>`, xref: `x${end} domain`, yref: `y${end} domain`, x: 0, y: 1, xanchor: "left", yanchor: "bottom", showarrow: false, yshift: 4 });
    return own.map((trace) => ({ ...trace, xaxis: `x${end}`, yaxis: `y${end}`, showlegend: trace.showlegend && place === 0 }));
  });
  return { data: traces, layout };
}

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
