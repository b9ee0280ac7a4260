// What every page needs: the data, elements built from text only, numbers for people, and how every plot looks.
const data = JSON.parse(document.getElementById("data").textContent);
const DASH = "–";
const SVG = "http://www.w3.org/2000/svg";

const byId = (id) => document.getElementById(id);
const known = (value) => typeof value === "number" && Number.isFinite(value);
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Children are nodes or text; text never becomes markup.
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.flat().map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const say = (id, text) => { byId(id).textContent = text; };
const text = (value) => (value === null || value === undefined || value === "" ? DASH : String(value));
const percent = (value, digits = 0) => (known(value) ? (value * 100).toFixed(digits) + "\u00a0%" : DASH);

// Three digits and a unit prefix: 22.7 M.
function count(value) {
  if (!known(value)) return DASH;
  const prefix = [[1e12, "\u00a0T"], [1e9, "\u00a0G"], [1e6, "\u00a0M"], [1e3, "\u00a0k"]].find(([limit]) => Math.abs(value) >= limit * 0.9995);
  return prefix ? (value / prefix[0]).toPrecision(3) + prefix[1] : String(Math.round(value * 100) / 100);
}

const bytes = (value) => (known(value) ? count(value) + (Math.abs(value) < 1000 ? "\u00a0B" : "B") : DASH);
const milliseconds = (value) => (known(value) ? value.toFixed(value < 10 ? 2 : 1) + "\u00a0ms" : DASH);
const signed = (value) => (known(value) ? (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value * 100).toFixed(1) : DASH);
const plain = (value) => (known(value) ? value.toLocaleString("en-US", { maximumFractionDigits: Math.max(0, 3 - String(Math.trunc(Math.abs(value))).length), minimumFractionDigits: Math.max(0, 3 - String(Math.trunc(Math.abs(value))).length) }) : DASH);

// Like - and /, but null when a number is missing.
const difference = (a, b) => (known(a) && known(b) ? a - b : null);
const quotient = (a, b) => (known(a) && known(b) && b !== 0 ? a / b : null);

// How errors are written: what ErrorFormat of numbers.py says of them, and how a script computes with them.
const ERROR_KINDS = {
  linear: {
    show: percent, lost: difference, volume: true, range: (ends) => ends,
    around: (low, high) => { const room = Math.max((high - low) * 0.08, 0.005); return [Math.max(0, low - room), high + room]; },
  },
  log: {
    show: plain, lost: (a, b) => difference(quotient(a, b), 1), volume: false, range: (ends) => ends.map(Math.log10),
    around: (low, high) => [low / 1.1, high * 1.1],
  },
};
const measure = data.error ? { ...data.error, ...ERROR_KINDS[data.error.scale] } : null;
const lossWords = (value) => (known(value) ? `${signed(value)}\u00a0${measure.unit}` : DASH);

// How every plot looks: axes and frame in the colours of the page.
const heading = (words) => ({ text: words, standoff: 8, font: { size: 13 } });

function axis(extra) {
  return { gridcolor: style("--grid"), linecolor: style("--line"), zeroline: false, fixedrange: true, automargin: false, ...extra };
}

function frame(extra) {
  return {
    paper_bgcolor: "transparent", plot_bgcolor: "transparent", showlegend: false, dragmode: false, hovermode: "closest",
    margin: { l: 62, r: 20, t: 18, b: 50 }, font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: style("--soft") },
    hoverlabel: { bgcolor: style("--card"), bordercolor: style("--soft"), font: { color: style("--ink"), size: 13, family: getComputedStyle(document.body).fontFamily }, align: "left" }, ...extra,
  };
}

const QUIET = { displayModeBar: false, responsive: true };
