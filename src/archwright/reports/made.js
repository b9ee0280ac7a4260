// How the search went, and how everything was made and measured.
function drawProgress() {
  const values = result.hypervolume_over_time || [];
  const line = {
    type: "scatter", mode: "lines", x: values.map((_, index) => index + 1), y: values, line: { shape: "hv", width: 2, color: style("--accent") },
    hovertemplate: "after %{x} trials: %{y:.4f}<extra></extra>",
  };
  const layout = frame({
    hovermode: "x", xaxis: axis({ title: heading("Trials"), rangemode: "tozero" }),
    yaxis: axis({ title: heading("Hypervolume"), nticks: 6 }),
  });
  Plotly.react("progress-plot", [line], layout, QUIET);
}

function startProgress() {
  const values = (result.hypervolume_over_time || []).filter(known);
  say("progress-note", `The hypervolume is the area the front covers up to the reference (1, 1), ${measure.against} against share; higher is better. `
    + `It ended at ${known(result.hypervolume) ? result.hypervolume.toFixed(4) : DASH} after ${trials.length} trials with ${text(result.sampler)}.`);
  if (!values.length) byId("progress-plot").replaceWith(el("p", { class: "notice" }, "The hypervolume over time was not recorded."));
}

function drawPredicted() {
  const pairs = ((result.latency || {}).predicted_vs_measured || []).filter(([p, m]) => known(p) && known(m));
  if (!pairs.length) return;
  const top = Math.max(...pairs.flat()) * 1.06;
  const dots = {
    type: "scatter", mode: "markers", x: pairs.map(([p]) => p), y: pairs.map(([, m]) => m), marker: { size: 8, color: style("--accent") },
    hovertemplate: "predicted %{x:.2f} ms<br>measured %{y:.2f} ms<extra></extra>",
  };
  const same = { type: "scatter", mode: "lines", x: [0, top], y: [0, top], hoverinfo: "skip", line: { dash: "dot", width: 1.2, color: style("--soft") } };
  const layout = frame({
    margin: { l: 52, r: 8, t: 12, b: 46 }, xaxis: axis({ range: [0, top], title: heading("Predicted, ms") }), yaxis: axis({ range: [0, top], title: heading("Measured, ms") }),
  });
  Plotly.react("predicted-plot", [same, dots], layout, QUIET);
}

function phases() {
  const entries = Object.entries(result.seconds_by_phase || {});
  const longest = Math.max(...entries.map(([, value]) => value || 0), 1e-9);
  const rows = entries.map(([name, value]) => {
    const bar = el("i");
    bar.style.width = `${((value || 0) / longest) * 100}%`;
    return el("div", { class: "phase" }, el("div", {}, el("span", {}, name), el("span", {}, seconds(value))), el("div", { class: "track" }, bar));
  });
  return el("div", { class: "panel" }, el("h3", {}, `Time: ${seconds(result.seconds)}`), rows);
}

function latencyPanel() {
  const latency = result.latency;
  if (!latency) return [];
  const facts = definitions([["batch", latency.batch], ["tokens", latency.length], ["threads", latency.threads], ["rounds", latency.rounds], ["sentinel drift", percent(latency.sentinel_drift, 1)]]);
  return [el("div", { class: "panel" }, el("h3", {}, "Latency"), facts, el("p", { class: "note", style: "margin: 12px 0 0" }, driftWords(latency.sentinel_drift)))];
}

// A fixed network timed between the others shows whether the machine itself changed speed.
function driftWords(drift) {
  if (!known(drift)) return "No sentinel was timed, so a drift of the machine would go unnoticed.";
  return Math.abs(drift) <= 0.05 ? "A fixed sentinel network, timed in between, kept its speed: the latencies are comparable."
    : "A fixed sentinel network, timed in between, changed its speed: compare the latencies with care.";
}

function predictedPanel() {
  if (!((result.latency || {}).predicted_vs_measured || []).length) return [];
  return [el("div", { class: "panel" }, el("h3", {}, "Predicted and measured latency"), el("div", { class: "plot", id: "predicted-plot" }))];
}

function startMade() {
  const options = ["model", "family", "task", "metric", "space", "strategy", "sampler", "order", "seed"].map((name) => [name, result[name]]);
  options.push(["objectives", (result.objectives || []).join(", ")], ["trials", trials.length]);
  const environment = Object.entries({ archwright: result.archwright, ...(result.environment || {}) });
  byId("made").append(
    el("div", { class: "panel" }, el("h3", {}, "Options"), definitions(options)), phases(), ...latencyPanel(), ...predictedPanel(),
    el("div", { class: "panel" }, el("h3", {}, "Environment"), definitions(environment)),
  );
}
