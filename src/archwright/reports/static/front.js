// The front: axes, the plot, the budget slider and the one chosen sub-network.
const result = data.result;
const original = { nonembedding_share: 1, ...result.original };
const whole = { nonembedding_share: 1, ...(result.cut || result.original) }; // of which sub-networks are parts
const supernet = { nonembedding_share: 1, ...(result.supernet || {}) };
const front = result.front.map((member, index) => ({ ...member, index, commands: data.commands[index] }));
const trials = result.trials || [];

const product = (a, b) => (known(a) && known(b) ? a * b : null);
const objective = (...names) => (trial) => {
  const place = (result.objectives || []).findIndex((name) => names.includes(name));
  return place < 0 ? null : (trial.values || [])[place];
};
const SIZES = {
  share: {
    label: "share", volume: true, name: "Non-embedding parameters", format: (v) => percent(v, 1), ticks: ".0%", suffix: "",
    title: "Share of the non-embedding parameters",
    value: (network) => network.nonembedding_share, trial: (trial) => trial.nonembedding_share,
  },
  parameters: {
    label: "parameters", name: "Parameters", format: count, ticks: "~s", suffix: "", title: "Parameters, embeddings included",
    value: (network) => network.parameters,
    trial: (trial) => difference(whole.parameters, product(original.nonembedding_parameters, difference(whole.nonembedding_share, trial.nonembedding_share))),
  },
  flops: {
    label: "FLOPs", name: "FLOPs", format: count, ticks: "~s", suffix: "", title: "FLOPs of one forward pass",
    value: (network) => network.flops, trial: objective("flops"),
  },
  latency: {
    label: "latency", name: "Latency", format: milliseconds, ticks: "", suffix: " ms", title: `Measured latency, median and interval${data.latency_setup ? ` (${data.latency_setup})` : ""}`,
    value: (network) => (network.latency_ms || {}).median, trial: objective("latency_ms", "latency"),
    interval: (network) => network.latency_ms || {},
  },
  int8: {
    label: "int8 size", name: "Size after int8", format: bytes, ticks: "~s", suffix: "B", title: "Size after int8 quantization",
    value: (network) => network.int8_bytes, trial: objective("int8_bytes", "int8"),
  },
};
const ERRORS = {
  validation: { label: "validation", volume: measure.volume, title: `Validation ${measure.word}`, value: (n) => n.validation_error, trial: (t) => t.validation_error },
  test: { label: "test", title: `Test ${measure.word}`, value: (n) => n.test_error, trial: () => null },
};
const VIEWS = { near: { label: "close-up" }, whole: { label: "hypervolume to (1, 1)", whole: true } };

const state = { size: "share", error: "validation", view: "near", chosen: null, budget: 0.5 };
const size = () => SIZES[state.size];
const error = () => ERRORS[state.error];
const shown = (networks) => networks.filter((n) => known(size().value(n)) && known(error().value(n)));
const measured = (axis) => front.some((member) => known(axis.value(member)));
const bySize = () => shown(front).sort((a, b) => size().value(a) - size().value(b));
const drawsVolume = () => Boolean(size().volume && error().volume);

// Points no other point beats in both coordinates, from left to right.
function undominated(pairs) {
  const kept = [];
  for (const pair of [...pairs].sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
    if (!kept.length || pair[1] < kept[kept.length - 1][1]) kept.push(pair);
  }
  return kept;
}

// Rectangles between the front and the reference point (1, 1); their areas sum to the hypervolume.
function volume() {
  const pairs = (trials.length ? trials : front).map((n) => [n.nonembedding_share, n.validation_error]);
  const corner = undominated(pairs.filter(([x, y]) => known(x) && known(y) && x < 1 && y < 1));
  return corner.map(([x, y], index) => ({ x0: x, x1: index + 1 < corner.length ? corner[index + 1][0] : 1, y0: y, y1: 1 }));
}

// Trials that are not on the front: a point under a front member would take its hover and its click.
function triedPoints() {
  const place = (n) => `${n.nonembedding_share} ${n.validation_error}`;
  const taken = new Set([...front.map((n) => n.trial), ...front.map(place)]);
  return trials.filter((t) => !taken.has(t.trial) && !taken.has(place(t)))
    .map((t) => [size().trial(t), error().trial(t), t]).filter(([x, y]) => known(x) && known(y));
}

function ranges() {
  if (VIEWS[state.view].whole && drawsVolume()) return { x: [0, 1.04], y: [0, 1.04] };
  const networks = shown([...front, original, supernet]);
  const xs = [...networks.map((n) => size().value(n)), ...networks.map((n) => (size().interval ? size().interval(n).high : null))];
  const ys = [...networks.map((n) => error().value(n)), ...triedPoints().map(([, y]) => y)];
  const [low, high] = ys.length ? [Math.min(...ys), Math.max(...ys)] : [0, 1];
  return { x: [0, Math.max(...xs.filter(known), 0) * 1.05 || 1], y: measure.around(low, high) };
}

function hoverText(name, n) {
  const latency = n.latency_ms || {};
  const interval = known(latency.low) && known(latency.high) ? ` (${latency.low.toFixed(2)} to ${latency.high.toFixed(2)})` : "";
  return [`<b>${name}</b>`, `validation ${measure.word} ${measure.show(n.validation_error, 2)}`, `test ${measure.word} ${measure.show(n.test_error, 2)}`,
    `${percent(n.nonembedding_share, 1)} of the non-embedding parameters`, `${count(n.parameters)} parameters, ${count(n.flops)} FLOPs`,
    `latency ${milliseconds(latency.median)}${interval}${data.latency_setup ? `, ${data.latency_setup}` : ""}`, `int8 ${bytes(n.int8_bytes)}`].join("<br>");
}

function networkTrace(networks, names, marker) {
  const spread = size().interval && {
    type: "data", symmetric: false, thickness: 1.2, width: 3, color: marker.color,
    array: networks.map((n) => Math.max(difference(size().interval(n).high, size().value(n)), 0)),
    arrayminus: networks.map((n) => Math.max(difference(size().value(n), size().interval(n).low), 0)),
  };
  return {
    type: "scatter", mode: "markers", marker, cliponaxis: false, x: networks.map(size().value), y: networks.map(error().value),
    text: networks.map((n, index) => hoverText(names(n, index), n)), customdata: networks.map((n) => n.index),
    hovertemplate: "%{text}<extra></extra>", ...(spread ? { error_x: spread } : {}),
  };
}

function frontTraces(range) {
  const tried = triedPoints();
  const corner = undominated(shown(front).map((n) => [size().value(n), error().value(n)]));
  const stairs = corner.length ? [[corner[0][0], range.y[1]], ...corner, [range.x[1], corner[corner.length - 1][1]]] : [];
  const accent = style("--accent");
  return [
    { type: "scatter", mode: "markers", x: tried.map(([x]) => x), y: tried.map(([, y]) => y), customdata: tried.map(() => null),
      marker: { size: 5, color: style("--tried"), opacity: 0.38 }, hovertemplate: "%{text}<extra></extra>",
      text: tried.map(([, , t]) => `trial ${text(t.trial)}, tried<br>validation ${measure.word} ${measure.show(t.validation_error, 2)}<br>${percent(t.nonembedding_share, 1)} of the non-embedding parameters`) },
    { type: "scatter", mode: "lines", line: { shape: "hv", width: 2, color: accent }, x: stairs.map(([x]) => x), y: stairs.map(([, y]) => y), hoverinfo: "skip" },
    networkTrace(shown(front), (n) => `sub-network of trial ${text(n.trial)}`, { size: 10, color: accent, line: { width: 1.5, color: style("--card") } }),
    networkTrace(shown([supernet]), () => "full super-network", { size: 17, symbol: "square-open", color: style("--original"), line: { width: 2 } }),
    networkTrace(shown([original]), () => "original, fine-tuned", { size: 11, symbol: "diamond", color: style("--original") }),
    ring(),
  ];
}

const budgetLine = () => ({ type: "line", x0: state.budget, x1: state.budget, y0: 0, y1: 1, yref: "paper", line: { color: style("--soft"), width: 1.2, dash: "dot" } });

// Around the chosen point; a trace, because a shape of fixed size is distorted on a logarithmic axis.
const RING = 5;

function ringPlace() {
  const member = front[state.chosen];
  const here = member && shown([member]).length > 0;
  return { x: here ? [size().value(member)] : [], y: here ? [error().value(member)] : [] };
}

const ring = () => ({
  type: "scatter", mode: "markers", hoverinfo: "skip", cliponaxis: false, ...ringPlace(),
  marker: { size: 22, symbol: "circle-open", color: style("--ink"), line: { width: 2.2 } },
});

function drawFront() {
  const range = ranges();
  const shade = { type: "rect", layer: "below", fillcolor: style("--shade"), line: { width: 0.6, color: style("--shade-line") } };
  const corner = { x: 1, y: 1, text: "reference (1, 1)", showarrow: false, xanchor: "right", yanchor: "top", xshift: -6, yshift: -6 };
  const layout = frame({
    xaxis: axis({ range: range.x, tickformat: size().ticks, ticksuffix: size().suffix, title: heading(size().title), nticks: 7 }),
    yaxis: axis({ type: measure.scale, range: measure.range(range.y), tickformat: measure.ticks, title: heading(error().title), nticks: 8 }),
    shapes: [budgetLine(), ...(drawsVolume() ? volume().map((box) => ({ ...shade, ...box })) : [])],
    annotations: drawsVolume() && VIEWS[state.view].whole ? [corner] : [],
  });
  Plotly.react("front-plot", frontTraces(range), layout, QUIET);
}

function mark() {
  showBudget();
  showChosen();
  if (window.Plotly && byId("front-plot").data) moveMarks();
}

function moveMarks() {
  const { x, y } = ringPlace();
  Plotly.update("front-plot", { x: [x], y: [y] }, { "shapes[0]": budgetLine() }, [RING]);
}

function choose(index) {
  state.chosen = index;
  const value = size().value(front[index]);
  if (known(value)) state.budget = value;
  mark();
}

// As `select` does: the largest within the budget that no smaller one beats; without re-scored rows the lowest validation error.
function best() {
  const fitting = front.filter((n) => known(n.validation_error) && known(size().value(n)) && size().value(n) <= state.budget);
  if ((result.selection || {}).rule !== "halves") return fitting.sort((a, b) => a.validation_error - b.validation_error)[0];
  fitting.sort((a, b) => a.nonembedding_share - b.nonembedding_share);
  return fitting.filter((n, place) => !fitting.slice(0, place).some((smaller) => n.beaten_by.includes(smaller.trial))).pop();
}

function spend(budget) {
  state.budget = budget;
  const member = best() || bySize()[0];
  state.chosen = member ? member.index : state.chosen;
  mark();
}

function showBudget() {
  const slider = byId("budget");
  slider.value = Math.round((state.budget / ranges().x[1]) * 1000);
  const absolute = size().absolute ? ` (${size().absolute(state.budget)})` : "";
  say("budget-label", `${size().name} at most ${size().format(state.budget)}${absolute}`);
  slider.setAttribute("aria-valuetext", size().format(state.budget));
  const member = front[state.chosen];
  const fits = best();
  const smallest = bySize()[0];
  say("budget-answer", fits ? `gives trial ${text(member.trial)}, validation ${measure.word} ${measure.show(member.validation_error, 1)}`
    : smallest ? `fits none: the smallest needs ${size().format(size().value(smallest))}` : "");
}
SIZES.share.absolute = (share) => (known(original.nonembedding_parameters) ? `${count(share * original.nonembedding_parameters)} of ${count(original.nonembedding_parameters)}` : DASH);

function segments(id, options, key, changed) {
  for (const [name, option] of Object.entries(options)) {
    const input = el("input", { type: "radio", name: id, value: name });
    input.checked = state[key] === name;
    input.disabled = !option.usable();
    input.addEventListener("change", () => { state[key] = name; changed(); });
    byId(id).append(el("label", {}, input, el("span", {}, option.label)));
  }
}

function startFront() {
  for (const axis of [...Object.values(SIZES), ...Object.values(ERRORS)]) axis.usable = () => measured(axis);
  for (const view of Object.values(VIEWS)) view.usable = () => !view.whole || measure.volume;
  const redraw = () => {
    byId("view").querySelector("[value=whole]").disabled = !drawsVolume();
    if (known(state.chosen)) choose(state.chosen);
    drawFront();
    mark();
  };
  segments("x-axis", SIZES, "size", redraw);
  segments("y-axis", ERRORS, "error", redraw);
  segments("view", VIEWS, "view", redraw);
  byId("budget").addEventListener("input", (event) => spend((event.target.value / 1000) * ranges().x[1]));
  byId("front-plot").addEventListener("keydown", walk);
  spend(0.5);
}

function walk(event) {
  const members = bySize();
  const here = members.findIndex((n) => n.index === state.chosen);
  const steps = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: members.length - 1 };
  if (!(event.key in steps) || !members.length) return;
  event.preventDefault();
  choose(members[Math.min(Math.max(steps[event.key], 0), members.length - 1)].index);
}
