// Starts the page of a compression; the plots follow when plotly, further down, has been read.
function drawProgress() {
  const values = result.hypervolume_over_time || [];
  const seconds = trials.map((trial) => trial.seconds);
  const timed = overTime() && seconds.length === values.length;
  const line = {
    type: "scatter", mode: "lines", x: timed ? seconds : values.map((_, index) => index + 1), y: values, line: { shape: "hv", width: 2, color: style("--accent") },
    hovertemplate: `after %{x:.4~g} ${timed ? "s" : "trials"}: %{y:.4f}<extra></extra>`,
  };
  const layout = frame({
    hovermode: "x", xaxis: axis({ title: heading(timed ? "Seconds of the search" : "Trials"), rangemode: "tozero" }),
    yaxis: axis({ title: heading("Hypervolume"), nticks: 6 }),
  });
  Plotly.react("progress-plot", [line], layout, QUIET);
}

const overTime = () => byId("progress-over")?.querySelector("input:checked")?.value === "seconds";

function startProgress() {
  if (!byId("progress-over")) return;
  const inputs = ["trials", "seconds"].map((word) => el("input", { type: "radio", name: "progress-over", value: word }));
  inputs[0].checked = true;
  inputs[1].disabled = !trials.some((trial) => known(trial.seconds));
  for (const input of inputs) input.addEventListener("change", drawProgress);
  byId("progress-over").append(...inputs.map((input) => el("label", {}, input, el("span", {}, input.value))));
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

function drawAll() {
  drawFront();
  if (byId("progress-plot")) drawProgress();
  drawPredicted();
  drawParallel();
  drawKept();
}

startGallery();
startTable();
startParallel();
startProgress();
startFront();
document.addEventListener("DOMContentLoaded", () => {
  drawAll();
  addEventListener("resize", drawParallel);
  byId("front-plot").on("plotly_click", ({ points: [point] }) => { if (known(point.customdata)) choose(point.customdata); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
});
