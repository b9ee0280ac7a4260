// Plots whose figures a reader chooses, with a legend that hides and shows; tables that sort.
const panels = [];
const SHAPES = {
  circle: "M9 2a5 5 0 1 0 .01 0Z", square: "M4 2h10v10H4Z", diamond: "M9 0l7 7-7 7-7-7Z", "triangle-up": "M9 1l6 11H3Z", cross: "M7 2h4v3h3v4h-3v3H7V9H4V5h3Z",
  star: "M9 0l2 5h5l-4 3 2 6-5-4-5 4 2-6-4-3h5Z", "triangle-down": "M9 13L3 2h12Z", x: "M5 1l4 4 4-4 2 2-4 4 4 4-2 2-4-4-4 4-2-2 4-4-4-4Z",
};

// Names of a figure's legend, with the look of their first trace that has one.
function legendOf(figure) {
  const names = new Map();
  for (const trace of figure.data.filter((trace) => trace.showlegend && trace.legendgroup)) names.set(trace.legendgroup, trace);
  return names;
}

function keySymbol({ marker = {}, line = {}, mode = "" }) {
  const colour = marker.color || line.color;
  if (mode === "lines" || !marker.symbol) {
    const dash = line.dash ? { "stroke-dasharray": "3 3" } : {};
    return mode === "lines" ? svg("path", { d: "M0 7H18", stroke: colour, "stroke-width": 2.5, ...dash }) : svg("path", { d: SHAPES.circle, fill: colour });
  }
  const open = marker.symbol.endsWith("-open");
  const d = SHAPES[marker.symbol.replace("-open", "")] || SHAPES.circle;
  return svg("path", open ? { d, fill: "none", stroke: colour, "stroke-width": 2 } : { d, fill: colour });
}

const decoded = (words) => words.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

function legend(panel) {
  const entries = [...legendOf(panel.figure)].map(([name, trace]) => {
    const input = el("input", { type: "checkbox" });
    input.checked = !panel.hidden.has(name);
    input.addEventListener("change", () => {
      if (input.checked) panel.hidden.delete(name);
      else panel.hidden.add(name);
      drawPanel(panel);
    });
    return el("label", {}, input, el("span", {}, svg("svg", { viewBox: "0 0 18 14", "aria-hidden": "true" }, keySymbol(trace)), decoded(name)));
  });
  panel.legend.replaceChildren(...(entries.length > 1 ? entries : []));
}

// The figure in the colours of the page, with as many panels side by side as fit.
function themed(figure, width) {
  const { panels: number, columns, height } = figure.layout.meta;
  const across = Math.max(1, Math.min(columns, Math.floor(width / 260)));
  const rows = Math.ceil(number / across);
  const names = Object.keys(figure.layout).filter((key) => /^[xy]axis\d*$/.test(key));
  const axes = Object.fromEntries(names.map((key) => {
    const { title, ...own } = figure.layout[key];
    return [key, axis({ automargin: true, ...own, ...(title ? { title: heading(title.text) } : {}) })];
  }));
  const gaps = { xgap: across > 1 ? 0.24 : 0, ygap: rows > 1 ? 0.34 : 0 };
  return frame({
    ...figure.layout, ...axes, height: rows * height + 20, hovermode: figure.data.some((trace) => trace.type === "heatmap" || /markers/.test(trace.mode)) ? "closest" : "x",
    margin: { l: 62, r: 20, t: figure.layout.annotations.length ? 40 : 18, b: 56 }, grid: { ...figure.layout.grid, rows, columns: across, ...gaps },
    annotations: figure.layout.annotations.map((note) => ({ ...note, font: { size: 13, color: style("--ink") } })),
  });
}

function drawPanel(panel) {
  const { figure } = panel;
  const traces = figure.data.map((trace) => ({ ...trace, showlegend: false, visible: !panel.hidden.has(trace.legendgroup) }));
  const layout = themed(figure, panel.plot.clientWidth);
  if (figure.layout.meta.width) panel.plot.style.maxWidth = `${figure.layout.meta.width}px`;
  panel.plot.style.height = `${layout.height}px`;
  Plotly.react(panel.plot, traces, layout, QUIET);
}

function drawPanels() {
  for (const panel of panels) drawPanel(panel);
}

// The figure whose words share most with those chosen; the word just chosen counts above all others.
function pick(panel, place, word) {
  const wanted = panel.words.map((old, index) => (index === place ? word : old));
  const score = ([words]) => (words[place] === word ? 100 : 0) + words.filter((own, index) => own === wanted[index]).length;
  [panel.words, panel.figure] = [...panel.figures].sort((a, b) => score(b) - score(a))[0];
}

function chooser(panel, label, place, id) {
  const words = [...new Set(panel.figures.map(([own]) => own[place]))];
  const inputs = words.map((word) => el("input", { type: "radio", name: `${id}-${place}`, value: word }));
  for (const input of inputs) input.addEventListener("change", () => { pick(panel, place, input.value); showPanel(panel); });
  panel.inputs.push(...inputs.map((input) => [input, place]));
  return el("fieldset", { class: "segments" }, el("legend", {}, label), inputs.map((input) => el("label", {}, input, el("span", {}, input.value))));
}

function checkChosen(panel) {
  for (const [input, place] of panel.inputs) input.checked = panel.words[place] === input.value;
}

function showPanel(panel) {
  checkChosen(panel);
  legend(panel);
  drawPanel(panel);
}

function plotsBlock({ figures, labels }, id) {
  const [words, figure] = figures[0];
  const panel = { figures, words, figure, inputs: [], hidden: new Set(), plot: el("div", { class: "plot free", id: `${id}-plot` }), legend: el("div", { class: "names" }) };
  const controls = figures.length > 1 ? [el("div", { class: "controls" }, labels.map((label, place) => chooser(panel, label, place, id)))] : [];
  panels.push(panel);
  checkChosen(panel);
  legend(panel);
  return el("div", {}, controls, panel.plot, panel.legend);
}

// Functions from a block's data and the id of its place to a node; page.py calls such blocks interactive.
const BLOCKS = { plots: plotsBlock };

function startBlocks() {
  for (const [id, block] of Object.entries(data.blocks)) byId(id).replaceWith(BLOCKS[block.kind](block, id));
  for (const table of document.querySelectorAll(".sorted table")) startSorting(table);
}

// Numbers sort as numbers, names as names; what is missing stays at the end.
function sortValue({ dataset, textContent }) {
  return "number" in dataset ? Number(dataset.number) : "word" in dataset ? textContent : null;
}

function compare(a, b, rising) {
  if (a === null || b === null) return (b !== null) - (a !== null);
  const order = typeof a === "string" ? a.localeCompare(b) : a - b;
  return rising ? order : -order;
}

function sortBy(button, body, place) {
  const head = button.parentNode;
  const value = (row) => sortValue(row.cells[place]);
  const numbers = body.rows.length > 0 && known(value(body.rows[0]));
  const rising = head.hasAttribute("aria-sort") ? head.getAttribute("aria-sort") !== "ascending" : !numbers;
  for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", rising ? "ascending" : "descending");
  body.append(...[...body.rows].sort((one, two) => compare(value(one), value(two), rising)));
}

function startSorting(table) {
  const [body] = table.tBodies;
  table.querySelectorAll("thead button").forEach((button, place) => button.addEventListener("click", () => sortBy(button, body, place)));
  const filter = table.parentNode.parentNode.querySelector(".filter input");
  filter?.addEventListener("input", () => { for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(filter.value.toLowerCase()); });
}

addEventListener("resize", () => { if (window.Plotly) drawPanels(); });
document.addEventListener("DOMContentLoaded", () => {
  if (!window.Plotly) return;
  drawPanels();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawPanels);
});
