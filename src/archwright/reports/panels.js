// Sections of plots, tables, facts and text, as panels.py describes them.
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

function tableBlock({ caption, head, rows }) {
  const looks = ({ bold, left }) => ({ class: [bold ? "bold" : "", left ? "left" : ""].join(" ").trim() });
  const body = rows.map((row) => el("tr", {}, row.map((cell) => el("td", looks(cell), cell.text))));
  const heads = head.map((cell) => el("th", { scope: "col", ...looks(cell) }, cell.text));
  return el("div", { class: "table" }, caption ? el("h3", {}, caption) : [],
    el("div", { class: "scroll plain", tabindex: "0", role: "region", "aria-label": caption || head.map((cell) => cell.text).join(", ") },
      el("table", {}, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, body))));
}

const BLOCKS = {
  plots: plotsBlock,
  table: tableBlock,
  facts: ({ panels: parts }) => el("div", { class: "made" }, parts.map(([name, pairs]) => el("div", { class: "panel" }, el("h3", {}, name), definitions(pairs)))),
  text: ({ paragraphs }) => el("div", { class: "prose" }, paragraphs.map((words) => el("p", {}, words))),
  picture: ({ source, words }) => el("img", { src: `data:image/svg+xml,${encodeURIComponent(source)}`, alt: words, style: "max-width: 100%" }),
  notice: ({ paragraphs }) => el("div", {}, paragraphs.map((words) => el("p", { class: "notice" }, words))),
};

function startSections(sections) {
  byId("sections").append(...sections.map(({ id, title, note, blocks }) => el("section", { id, "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, title), ...(note ? [el("p", { class: "note" }, note)] : []),
    ...blocks.map((block, index) => BLOCKS[block.kind](block, `${id}-${index}`)))));
}

addEventListener("resize", () => { if (window.Plotly) drawPanels(); });
