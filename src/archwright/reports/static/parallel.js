// Parallel coordinates of everything tried, brushed together with the front; and what the best keep per layer.
// Drawn on a canvas: thousands of lines, and no part of plotly that a strict content security policy would refuse.
const WHOLE_NUMBER = (value) => String(Math.round(value));
const CANDIDATES = [
  { key: "layers", name: "layers", value: (n) => n.layers ?? (layers(n).length ? layers(n).filter(([h, u]) => h || u).length : null), show: WHOLE_NUMBER },
  { key: "heads", name: "heads", value: (n) => n.heads ?? (layers(n).length ? layers(n).reduce((sum, [h]) => sum + h, 0) : null), show: WHOLE_NUMBER },
  { key: "units", name: "units", value: (n) => n.units ?? (layers(n).length ? layers(n).reduce((sum, [, u]) => sum + u, 0) : null), show: count },
  ...parameterNames().map((name) => ({ key: `config-${name}`, name, value: (n) => (n.params || n.config || {})[name], show: (v) => String(round(v, 3)) })),
  { key: "share", name: "share", value: (n) => n.nonembedding_share, show: (v) => percent(v) },
  ...(result.objectives || []).slice(1).filter((name) => name !== "nonembedding_parameters").map((name) => ({ key: name, name: name.replaceAll("_", " "), value: (n) => objective(name)(n) ?? (known(n[name]) ? n[name] : (n[name] || {}).median), show: (v) => (name.endsWith("_ms") ? milliseconds(v) : count(v)) })),
  { key: "error", name: measure.word, value: (n) => n.validation_error, show: (v) => measure.show(v, 1) },
];

// Numbers of a configuration that a trial shows by name, in a running search; what is counted already has an axis.
function parameterNames() {
  const first = trials.find((trial) => trial.params) || {};
  const names = Object.keys(first.params || {}).filter((name) => known(first.params[name]));
  const counted = ["layers", "heads", "units"].filter((name) => known(first[name]));
  return names.length <= 6 ? names.filter((name) => !counted.includes(name)) : [];
}

const MARGIN = { top: 34, bottom: 12, side: 46 };
const parallel = { axes: [], rows: [], drag: null };

// Every trial, and members of the front in place of their trials.
function parallelRows() {
  const byTrial = new Map(front.map((n) => [n.trial, n]));
  const rows = trials.filter((trial) => !byTrial.has(trial.trial)).map((trial) => ({ of: trial, member: null }));
  const own = new Map(trials.map((trial) => [trial.trial, trial]));
  return [...rows, ...front.map((n) => ({ of: { ...own.get(n.trial), ...n }, member: n.index }))];
}

function parallelAxes(rows) {
  return CANDIDATES.map((axis) => {
    const values = rows.map(({ of }) => axis.value(of)).filter(known);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return { ...axis, low, high, share: values.length / Math.max(rows.length, 1) };
  }).filter((axis) => axis.share > 0 && (axis.high > axis.low || axis.key === "error"));
}

function brushed(n) {
  return Object.entries(state.brush).every(([key, [low, high]]) => {
    const value = CANDIDATES.find((axis) => axis.key === key).value(n);
    return !known(value) || (value >= low - 1e-12 && value <= high + 1e-12);
  });
}

const axisX = (place, width) => MARGIN.side + (place * (width - 2 * MARGIN.side)) / Math.max(parallel.axes.length - 1, 1);
const axisY = (axis, value, height) => height - MARGIN.bottom - (quotient(value - axis.low, axis.high - axis.low) ?? 0.5) * (height - MARGIN.top - MARGIN.bottom);
const axisValue = (axis, y, height) => axis.low + ((height - MARGIN.bottom - y) / (height - MARGIN.top - MARGIN.bottom)) * (axis.high - axis.low);

function colourAt(share) {
  const scale = colourScale();
  const at = Math.min(Math.max(known(share) ? share : 0, 0), 1) * (scale.length - 1);
  const [low, high] = [scale[Math.floor(at)][1], scale[Math.ceil(at)][1]];
  const channel = (hex, place) => parseInt(hex.slice(1 + 2 * place, 3 + 2 * place), 16);
  return `rgb(${[0, 1, 2].map((place) => Math.round(channel(low, place) + (at % 1) * (channel(high, place) - channel(low, place)))).join(",")})`;
}

function drawParallel() {
  const canvas = byId("parallel-lines");
  if (!canvas || !parallel.axes.length) return;
  const [width, height, scale] = [canvas.parentNode.clientWidth, 340, window.devicePixelRatio || 1];
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const worst = parallel.axes.find((axis) => axis.key === "error");
  const colour = ({ of }) => (worst ? colourAt(quotient(difference(worst.value(of), worst.low), worst.high - worst.low)) : style("--accent"));
  const trace = ({ of }) => {
    pen.beginPath();
    let begun = false;
    parallel.axes.forEach((axis, place) => {
      const value = axis.value(of);
      if (!known(value)) { begun = false; return; }
      pen[begun ? "lineTo" : "moveTo"](axisX(place, width), axisY(axis, value, height));
      begun = true;
    });
    pen.stroke();
  };
  const all = parallel.rows.map((row) => ({ ...row, in: inside(row.of) }));
  pen.lineWidth = 1;
  pen.strokeStyle = style("--tried");
  pen.globalAlpha = all.length > 400 ? 0.05 : 0.13;
  all.filter((row) => !row.in).forEach(trace);
  pen.globalAlpha = all.length > 400 ? 0.4 : 0.75;
  all.filter((row) => row.in && row.member === null).forEach((row) => { pen.strokeStyle = colour(row); trace(row); });
  pen.globalAlpha = 1;
  pen.lineWidth = 2;
  all.filter((row) => row.in && row.member !== null).forEach((row) => { pen.strokeStyle = colour(row); trace(row); });
  pen.lineWidth = 3.5;
  pen.strokeStyle = style("--ink");
  all.filter((row) => row.member !== null && row.member === state.chosen).forEach(trace);
  drawAxes(pen, width, height);
  placeHandles(width, height);
  const fitting = all.filter((row) => row.in).length;
  say("parallel-says", `${fitting.toLocaleString("en")} of ${all.length.toLocaleString("en")} networks are within sliders and brushes. Violet lines have a low ${measure.word}, yellow ones a high one; thick ones are on the front, the thickest is chosen.`);
}

function drawAxes(pen, width, height) {
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  pen.textAlign = "center";
  parallel.axes.forEach((axis, place) => {
    const x = axisX(place, width);
    pen.lineWidth = 1;
    pen.strokeStyle = style("--soft");
    pen.beginPath();
    pen.moveTo(x, MARGIN.top);
    pen.lineTo(x, height - MARGIN.bottom);
    pen.stroke();
    pen.fillStyle = style("--ink");
    pen.fillText(axis.name, x, 13, width / parallel.axes.length);
    pen.fillStyle = style("--soft");
    pen.fillText(axis.show(axis.high), x, 28);
    pen.fillText(axis.show(axis.low), x, height);
    const brush = state.brush[axis.key];
    if (!brush) return;
    const [top, bottom] = [axisY(axis, brush[1], height), axisY(axis, brush[0], height)];
    pen.fillStyle = style("--shade");
    pen.strokeStyle = style("--accent");
    pen.lineWidth = 1.5;
    pen.fillRect(x - 9, top, 18, bottom - top);
    pen.strokeRect(x - 9, top, 18, bottom - top);
  });
}

// An axis for the mouse and the keyboard: drag over it, or arrow keys for the upper end, with Shift for the lower one.
function axisHandle(axis) {
  const handle = el("div", { class: "axis-handle", tabindex: 0, role: "group", "data-axis": axis.key });
  const set = (low, high) => {
    const ends = [Math.max(Math.min(low, high), axis.low), Math.min(Math.max(low, high), axis.high)];
    if (ends[0] <= axis.low && ends[1] >= axis.high) delete state.brush[axis.key];
    else state.brush[axis.key] = ends;
    mark();
  };
  const clear = () => { delete state.brush[axis.key]; mark(); };
  const valueAt = (event) => { const box = handle.getBoundingClientRect(); return axisValue(axis, event.clientY - box.top + MARGIN.top - 8, 340); };
  handle.addEventListener("pointerdown", (event) => { handle.setPointerCapture(event.pointerId); parallel.drag = valueAt(event); });
  handle.addEventListener("pointermove", (event) => { if (parallel.drag !== null && event.buttons) set(parallel.drag, valueAt(event)); });
  handle.addEventListener("pointerup", (event) => {
    const moved = parallel.drag !== null && Math.abs(valueAt(event) - parallel.drag) > (axis.high - axis.low) * 0.02;
    if (!moved) clear();
    parallel.drag = null;
  });
  handle.addEventListener("keydown", (event) => {
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (event.key === "Escape") clear();
    if (!step) return;
    event.preventDefault();
    const [low, high] = state.brush[axis.key] || [axis.low, axis.high];
    const by = (step * (axis.high - axis.low)) / 20;
    if (event.shiftKey) set(Math.min(low + by, high), high);
    else set(low, Math.max(high + by, low));
  });
  return handle;
}

function placeHandles(width) {
  for (const handle of byId("parallel").querySelectorAll(".axis-handle")) {
    const place = parallel.axes.findIndex((axis) => axis.key === handle.dataset.axis);
    const axis = parallel.axes[place];
    handle.style.left = `${axisX(place, width) - 16}px`;
    const brush = state.brush[axis.key];
    handle.setAttribute("aria-label", `${axis.name}: ${brush ? `${axis.show(brush[0])} to ${axis.show(brush[1])}` : "all"}. Arrow keys move the upper end, with Shift the lower one, Escape clears.`);
  }
}

function refreshParallel() {
  parallel.rows = parallelRows();
  const before = parallel.axes.map((axis) => axis.key).join();
  parallel.axes = parallelAxes(parallel.rows);
  if (parallel.axes.map((axis) => axis.key).join() === before) return;
  byId("parallel").replaceChildren(el("canvas", { id: "parallel-lines", "aria-hidden": "true" }), ...parallel.axes.map(axisHandle));
}

function startParallel() {
  if (!byId("parallel")) return;
  refreshParallel();
  if (!parallel.axes.length) say("parallel-says", "Nothing was tried yet.");
  byId("brush-clear").addEventListener("click", () => { state.brush = {}; mark(); });
}

// Share of heads and units that the members within the limits keep, layer by layer, on average.
function drawKept() {
  const plot = byId("kept-plot");
  const members = front.filter((n) => layers(n).length && inside(n));
  if (!plot || !window.Plotly) return;
  const depth = Math.max(...front.map((n) => layers(n).length), 0);
  say("kept-says", members.length ? `Mean over the ${members.length === 1 ? "one sub-network of the front that is" : `${members.length} sub-networks of the front that are`} within sliders and brushes.` : "No sub-network of the front is within sliders and brushes.");
  const mean = (side, full) => Array.from({ length: depth }, (_, at) => (members.length && full ? members.reduce((sum, n) => sum + (layers(n)[at] || [0, 0])[side], 0) / members.length / full : 0));
  const bar = (name, values, look) => ({ type: "bar", name, x: values.map((_, at) => at + 1), y: values, marker: look, hovertemplate: `layer %{x}: %{y:.0%} of the ${name}<extra></extra>` });
  const layout = frame({
    barmode: "group", bargap: 0.25, showlegend: true, legend: { orientation: "h", x: 0, y: 1.12 },
    xaxis: axis({ title: heading("Layer"), dtick: depth > 16 ? 4 : 1 }), yaxis: axis({ title: heading("Share kept"), tickformat: ".0%", range: [0, 1.02] }),
  });
  Plotly.react("kept-plot", [
    bar("heads", mean(0, result.heads), { color: style("--accent") }),
    bar("units", mean(1, result.units), { color: style("--original") }),
  ], layout, QUIET);
}

// The gallery and the table follow too.
function showInside() {
  for (const node of document.querySelectorAll("[data-member]")) node.toggleAttribute("data-outside", !inside(front[node.dataset.member]));
}
