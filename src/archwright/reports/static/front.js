// The front: axes, the plot, the budget sliders and the one chosen sub-network.
const result = data.result;
const original = { nonembedding_share: 1, ...result.original };
const whole = { nonembedding_share: 1, ...(result.cut || result.original) }; // of which sub-networks are parts
const supernet = { nonembedding_share: 1, ...(result.supernet || {}) };
const front = result.front.map((member, index) => ({ ...member, index, commands: data.commands[index] || {} }));
const trials = result.trials || [];
const layers = (n) => (Array.isArray(n.keep) ? n.keep : []);

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
  validation: { label: "validation", volume: measure.volume, error: true, name: `Validation ${measure.word}`, title: `Validation ${measure.word}`, value: (n) => n.validation_error, trial: (t) => t.validation_error, loss: (n) => n.loss },
  test: { label: "test", error: true, name: `Test ${measure.word}`, title: `Test ${measure.word}`, value: (n) => n.test_error, trial: () => null, loss: (n) => n.test_loss },
};
const UPWARDS = { ...ERRORS, latency: SIZES.latency, flops: SIZES.flops, int8: SIZES.int8 };
const VIEWS = { near: { label: "close-up" }, log: { label: "log size", log: true }, whole: { label: "hypervolume to (1, 1)", whole: true } };
const TRIED = { plain: { label: "shown" }, time: { label: "by time" }, none: { label: "hidden" } };

const state = { size: "share", error: "validation", view: "near", tried: "plain", chosen: null, limits: { share: 0.5 }, brush: {} };
const size = () => SIZES[state.size];
const error = () => UPWARDS[state.error];
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
  const tried = state.tried === "none" ? [] : triedPoints();
  const xs = [...networks.map((n) => size().value(n)), ...networks.map((n) => (size().interval ? size().interval(n).high : null)), ...tried.map(([x]) => x)].filter(known);
  const ys = [...networks.map((n) => error().value(n)), ...tried.map(([, y]) => y)];
  const [low, high] = ys.length ? [Math.min(...ys), Math.max(...ys)] : [0, 1];
  const most = Math.max(...xs, 0) * 1.05 || 1;
  const x = VIEWS[state.view].log ? [Math.log10(Math.max(Math.min(...xs.filter((v) => v > 0), most) / 1.2, 1e-12)), Math.log10(most)] : [0, most];
  return { x, y: error().error || !ys.length ? measure.around(low, high) : [0, high * 1.05 || 1] };
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
  const whiskers = errorSpread(networks);
  return {
    type: "scatter", mode: "markers", marker, cliponaxis: false, x: networks.map(size().value), y: networks.map(error().value),
    text: networks.map((n, index) => hoverText(names(n, index), n)), customdata: networks.map((n) => n.index),
    hovertemplate: "%{text}<extra></extra>", ...(spread ? { error_x: spread } : {}), ...(whiskers ? { error_y: { ...whiskers, color: marker.color } } : {}),
  };
}

// The 95 % interval of the difference from the original, around a member's error; errors are shares only, not perplexities.
function errorSpread(networks) {
  const ends = error().loss && measure.volume ? networks.map((n) => error().loss(n) || {}) : [];
  if (!ends.some(({ low, high }) => known(low) && known(high))) return null;
  const reach = (end, sign) => ends.map((interval) => (known(interval[end]) && known(interval.value) ? Math.max(sign * (interval[end] - interval.value), 0) : 0));
  return { type: "data", symmetric: false, thickness: 0.8, width: 2, array: reach("high", 1), arrayminus: reach("low", -1) };
}

// Violet to yellow, ever brighter, so that the order is seen in grey too; as viridis, but with ends that stand out from a
// white ground, and from a dark one.
const SCALES = {
  light: [[0, "#440154"], [0.25, "#3b528b"], [0.5, "#21918c"], [0.75, "#4aa84f"], [1, "#b59a00"]],
  dark: [[0, "#7b6fd0"], [0.25, "#6c8fd6"], [0.5, "#3fb6b0"], [0.75, "#7fd873"], [1, "#fde725"]],
};
const colourScale = () => SCALES[matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"];
const DIMMED = 0.12;

function triedTrace() {
  const tried = state.tried === "none" ? [] : triedPoints();
  const byTime = state.tried === "time";
  return {
    type: "scatter", mode: "markers", x: tried.map(([x]) => x), y: tried.map(([, y]) => y), customdata: tried.map(() => null), ids: tried.map(([, , t]) => String(t.trial)),
    marker: {
      size: byTime ? 7 : 5, opacity: triedOpacity(tried), color: byTime ? tried.map(([, , t]) => t.trial) : style("--tried"),
      ...(byTime ? { colorscale: colourScale(), cmin: 0, cmax: Math.max(trials.length - 1, 1), showscale: true, colorbar: { thickness: 10, outlinewidth: 0, title: { text: "trial", font: { color: style("--soft") } }, tickfont: { color: style("--soft") } } } : {}),
    },
    hovertemplate: "%{text}<extra></extra>",
    text: tried.map(([, , t]) => `trial ${text(t.trial)}, tried<br>validation ${measure.word} ${measure.show(t.validation_error, 2)}<br>${percent(t.nonembedding_share, 1)} of the non-embedding parameters`),
  };
}

const triedOpacity = (tried) => tried.map(([, , trial]) => (inside(trial) ? (state.tried === "time" ? 0.85 : 0.45) : DIMMED));
const frontOpacity = () => shown(front).map((n) => (inside(n) ? 1 : 0.25));

function frontTraces(range) {
  const corner = error().error ? undominated(shown(front).map((n) => [size().value(n), error().value(n)])) : [];
  const right = VIEWS[state.view].log ? 10 ** range.x[1] : range.x[1];
  const stairs = corner.length ? [[corner[0][0], range.y[1]], ...corner, [right, corner[corner.length - 1][1]]] : [];
  const accent = style("--accent");
  return [
    triedTrace(),
    { type: "scatter", mode: "lines", line: { shape: "hv", width: 2, color: accent }, x: stairs.map(([x]) => x), y: stairs.map(([, y]) => y), hoverinfo: "skip" },
    networkTrace(shown(front), (n) => `sub-network of trial ${text(n.trial)}`, { size: 10, color: accent, opacity: frontOpacity(), line: { width: 1.5, color: style("--card") } }),
    networkTrace(shown([supernet]), () => "full super-network", { size: 17, symbol: "square-open", color: style("--original"), line: { width: 2 } }),
    networkTrace(shown([original]), () => "original, fine-tuned", { size: 11, symbol: "diamond", color: style("--original") }),
    ring(),
    ...grownTraces(range),
  ];
}

// The front as it grew: after a tenth, a quarter and half of the trials, in their colours of time.
const MOMENTS = [0.1, 0.25, 0.5];

function grownTraces(range) {
  if (state.tried !== "time" || !error().error || trials.length < 10) return [];
  const right = VIEWS[state.view].log ? 10 ** range.x[1] : range.x[1];
  return MOMENTS.map((share) => {
    const amount = Math.round(share * trials.length);
    const corner = undominated(trials.slice(0, amount).map((t) => [size().trial(t), error().trial(t)]).filter(([x, y]) => known(x) && known(y)));
    const stairs = corner.length ? [[corner[0][0], range.y[1]], ...corner, [right, corner[corner.length - 1][1]]] : [];
    const scale = colourScale();
    const place = Math.min(scale.findIndex(([start]) => start >= share), scale.length - 1);
    return {
      type: "scatter", mode: "lines+text", line: { shape: "hv", width: 1.4, dash: "dot", color: scale[place][1] }, x: stairs.map(([x]) => x), y: stairs.map(([, y]) => y),
      text: stairs.map((_, at) => (at === stairs.length - 1 ? `after ${amount}` : "")), textposition: "top left", textfont: { size: 11, color: style("--soft") },
      hovertemplate: `front after ${amount} trials<extra></extra>`, name: `after ${amount}`,
    };
  });
}

// A line at each limit that is about what an axis shows.
function limitLines() {
  const look = { type: "line", line: { color: style("--soft"), width: 1.2, dash: "dot" } };
  const across = LIMITS.find((limit) => limit.axis === state.size && known(state.limits[limit.key]));
  const lines = [across ? { ...look, x0: state.limits[across.key], x1: state.limits[across.key], y0: 0, y1: 1, yref: "paper" } : { ...look, visible: false, x0: 0, x1: 0, y0: 0, y1: 1, yref: "paper" }];
  const base = error().error ? original[state.error === "test" ? "test_error" : "validation_error"] : null;
  if (known(state.limits.loss) && known(base) && state.error === "validation") {
    const most = measure.volume ? base + state.limits.loss : base * (1 + state.limits.loss);
    lines.push({ ...look, x0: 0, x1: 1, xref: "paper", y0: most, y1: most });
  }
  return lines;
}

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

function frontShapes() {
  const shade = { type: "rect", layer: "below", fillcolor: style("--shade"), line: { width: 0.6, color: style("--shade-line") } };
  return [...limitLines(), ...(drawsVolume() && !VIEWS[state.view].log ? volume().map((box) => ({ ...shade, ...box })) : [])];
}

function drawFront() {
  const range = ranges();
  const corner = { x: 1, y: 1, text: "reference (1, 1)", showarrow: false, xanchor: "right", yanchor: "top", xshift: -6, yshift: -6 };
  const upwards = error().error ? { type: measure.scale, range: measure.range(range.y), tickformat: measure.ticks } : { range: range.y, tickformat: error().ticks, ticksuffix: error().suffix };
  const layout = frame({
    xaxis: axis({ type: VIEWS[state.view].log ? "log" : "linear", range: range.x, tickformat: size().ticks, ticksuffix: size().suffix, title: heading(size().title), nticks: 7 }),
    yaxis: axis({ ...upwards, title: heading(error().title), nticks: 8 }),
    shapes: frontShapes(), annotations: drawsVolume() && VIEWS[state.view].whole ? [corner] : [],
  });
  Plotly.react("front-plot", frontTraces(range), layout, QUIET);
}

// What a sub-network may cost or lose: a slider each, and the option of `archwright select` that says the same.
const lost = (n) => measure.lost(n.validation_error, original.validation_error);
const LIMITS = [
  { key: "share", axis: "share", name: "Non-embedding parameters", value: (n) => n.nonembedding_share, show: (v) => percent(v, 1), round: (v) => Math.ceil(v * 1e4 - 1e-6) / 1e4, option: (v) => `--params ${round(100 * v, 2)}%` },
  { key: "latency", axis: "latency", name: "Latency", value: (n) => SIZES.latency.value(n) ?? SIZES.latency.trial(n), show: milliseconds, round: (v) => Math.ceil(v * 1e3 - 1e-6) / 1e3, option: (v) => `--latency-ms ${round(v, 3)}` },
  { key: "int8", axis: "int8", name: "Size with 8-bit weights", value: (n) => n.int8_file_bytes ?? n.int8_bytes, show: bytes, round: (v) => Math.ceil(v / 1e4 - 1e-6) * 1e4, option: (v) => `--int8-size ${round(v / 1e6, 2)}MB` },
  { key: "loss", name: "Largest loss", value: lost, show: (v) => lossWords(v), round: (v) => Math.ceil(v * 1e4 - 1e-6) / 1e4, option: (v) => `--max-loss ${round(100 * v, 2)}%` },
];
const round = (value, digits) => Number(value.toFixed(digits));
const isOn = (limit) => known(state.limits[limit.key]);
const within = (limit, n) => { const value = limit.value(n); return !known(value) || value <= state.limits[limit.key] + 1e-12; };
const fits = (n) => LIMITS.every((limit) => !isOn(limit) || (known(limit.value(n)) && within(limit, n)));

// Whether a network or a trial is within the sliders and the brushes; what is not known of a trial does not count.
function inside(n) {
  return LIMITS.every((limit) => !isOn(limit) || within(limit, n)) && brushed(n);
}

// As `select` does: the largest within the budget that no smaller one beats; without re-scored rows the lowest validation
// error; with nothing but a largest loss the smallest that is good enough.
function best() {
  const fitting = front.filter((n) => known(n.validation_error) && fits(n)).sort((a, b) => a.nonembedding_share - b.nonembedding_share);
  if (isOn(LIMITS[3]) && !LIMITS.slice(0, 3).some(isOn)) return fitting[0];
  if ((result.selection || {}).rule !== "halves") return fitting.sort((a, b) => a.validation_error - b.validation_error)[0];
  return fitting.filter((n, place) => !fitting.slice(0, place).some((smaller) => (n.beaten_by || []).includes(smaller.trial))).pop();
}

function selectLine() {
  const options = LIMITS.filter(isOn).map((limit) => limit.option(state.limits[limit.key]));
  return options.length ? `${data.select} ${options.join(" ")}` : "";
}

function mark() {
  showLimits();
  showChosen();
  showInside();
  requestMarks();
}

// Plots follow a slider when it rests for a moment: thousands of points cannot be drawn at each of its steps.
let waiting = 0;

function requestMarks() {
  clearTimeout(waiting);
  waiting = setTimeout(() => { if (window.Plotly && byId("front-plot").data) moveMarks(); drawParallel(); drawKept(); }, trials.length > 1000 ? 140 : 30);
}

function moveMarks() {
  const { x, y } = ringPlace();
  const tried = state.tried === "none" ? [] : triedPoints();
  Plotly.restyle("front-plot", { x: [x], y: [y] }, [RING]);
  Plotly.update("front-plot", { "marker.opacity": [triedOpacity(tried), frontOpacity()] }, { shapes: frontShapes() }, [0, 2]);
}

function choose(index) {
  state.chosen = index;
  const share = front[index].nonembedding_share;
  if (known(share)) state.limits = { share: LIMITS[0].round(share) };
  mark();
}

function spend(key, value) {
  state.limits = { ...state.limits, [key]: value };
  const member = best();
  state.chosen = member ? member.index : null;
  mark();
}

// Ends of a slider: the least and the most that a member of the front costs; at its right end there is no limit.
function ends(limit) {
  const values = [...front, original].map(limit.value).filter(known);
  if (!values.length) return null;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (limit.key === "share") return [0, Math.max(1, high)];
  return limit.key === "loss" ? [0, Math.max(high, 0.01)] : [low - (high - low) * 0.02, high];
}

function showLimits() {
  for (const limit of LIMITS) {
    const [slider, span] = [byId(`limit-${limit.key}`), ends(limit)];
    if (!slider || !span) continue;
    const value = state.limits[limit.key];
    slider.value = known(value) ? Math.round(((value - span[0]) / (span[1] - span[0] || 1)) * 1000) : 1000;
    const absolute = known(value) && limit.key === "share" && known(original.nonembedding_parameters) ? ` (${count(value * original.nonembedding_parameters)})` : "";
    const words = known(value) ? `at most ${limit.show(value)}${absolute}` : "any";
    byId(`limit-${limit.key}-value`).textContent = words;
    slider.setAttribute("aria-valuetext", words);
  }
  showAnswer();
}

function showAnswer() {
  const member = front[state.chosen];
  const answer = best();
  const smallest = [...front].filter((n) => known(n.nonembedding_share)).sort((a, b) => a.nonembedding_share - b.nonembedding_share)[0];
  const words = !LIMITS.some(isOn) ? "Move a slider: the best sub-network within its limits is chosen."
    : !answer ? `No sub-network of the front fits${smallest ? `: the smallest keeps ${percent(smallest.nonembedding_share, 1)} and loses ${lossWords(lost(smallest))}` : ""}.`
      : member && member.index !== answer.index ? `Trial ${text(member.trial)} is on the front, but select would take trial ${text(answer.trial)}, which is surely better.`
        : `Trial ${text(answer.trial)}: validation ${measure.word} ${measure.show(answer.validation_error, 1)}, ${front.filter(fits).length} of ${front.length} sub-networks fit.`;
  say("budget-answer", words);
  const foreign = LIMITS.filter((limit) => isOn(limit) && limit.key !== "loss" && !(data.costs || ["share"]).includes(limit.key));
  say("budget-note", foreign.length ? "The front was made for another cost: for this limit select looks among all trials and may find a better one." : "");
  byId("budget-command").replaceChildren(...(selectLine() && data.select ? [command(selectLine())] : []));
}

function startLimits() {
  const rows = LIMITS.filter((limit) => ends(limit)).map((limit) => {
    const slider = el("input", { type: "range", id: `limit-${limit.key}`, min: 0, max: 1000, step: 1, value: 1000, "aria-describedby": "budget-answer" });
    slider.addEventListener("input", () => {
      const [low, high] = ends(limit);
      spend(limit.key, Number(slider.value) >= 1000 ? null : limit.round(low + (slider.value / 1000) * (high - low)));
    });
    return el("div", { class: "limit" }, el("label", { for: `limit-${limit.key}` }, limit.name), slider, el("output", { id: `limit-${limit.key}-value`, for: `limit-${limit.key}` }));
  });
  byId("limits").replaceChildren(...rows);
  byId("limits-reset").addEventListener("click", () => { state.limits = {}; state.brush = {}; state.chosen = null; mark(); });
}

function segments(id, options, key, changed) {
  for (const [name, option] of Object.entries(options)) {
    const input = el("input", { type: "radio", name: id, value: name });
    input.checked = state[key] === name;
    input.disabled = !(option.usable ?? (() => true))();
    input.addEventListener("change", () => { state[key] = name; changed(); });
    byId(id).append(el("label", {}, input, el("span", {}, option.label)));
  }
}

function startFront() {
  for (const axis of [...Object.values(SIZES), ...Object.values(ERRORS)]) axis.usable = () => measured(axis);
  VIEWS.whole.usable = () => Boolean(measure.volume);
  const redraw = () => {
    byId("view").querySelector("[value=whole]").disabled = !drawsVolume();
    drawFront();
    mark();
  };
  segments("x-axis", SIZES, "size", redraw);
  segments("y-axis", UPWARDS, "error", redraw);
  segments("view", VIEWS, "view", redraw);
  segments("tried", TRIED, "tried", redraw);
  startLimits();
  byId("front-plot").addEventListener("keydown", walk);
  spend("share", 0.5);
  if (!known(state.chosen) && front.length) choose(0);
}

function walk(event) {
  const members = bySize();
  const here = members.findIndex((n) => n.index === state.chosen);
  const steps = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: members.length - 1 };
  if (!(event.key in steps) || !members.length) return;
  event.preventDefault();
  choose(members[Math.min(Math.max(steps[event.key], 0), members.length - 1)].index);
}
