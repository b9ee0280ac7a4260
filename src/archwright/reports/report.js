// Fills the page at once; the plots follow when plotly, further down, has been read.
// Name, look, and whether this report has it (always if not said).
const SYMBOLS = [
  ["sub-network on the front", svg("circle", { cx: 9, cy: 7, r: 5, fill: "var(--accent)" })],
  ["chosen", svg("circle", { cx: 9, cy: 7, r: 6, fill: "none", stroke: "var(--ink)", "stroke-width": 2 })],
  ["tried", svg("circle", { cx: 9, cy: 7, r: 2.5, fill: "var(--tried)", opacity: 0.6 })],
  ["original", svg("path", { d: "M9 0 L16 7 L9 14 L2 7 Z", fill: "var(--original)" })],
  ["full super-network", svg("rect", { x: 3.5, y: 1.5, width: 11, height: 11, fill: "none", stroke: "var(--original)", "stroke-width": 2 }), Boolean(result.supernet)],
  ["hypervolume", svg("rect", { x: 1, y: 1, width: 16, height: 12, fill: "var(--shade)", stroke: "var(--shade-line)" }), measure.volume],
];

function halfSize() {
  const small = front.filter((n) => known(n.nonembedding_share) && n.nonembedding_share <= 0.5 && known(n.validation_error));
  return small.sort((a, b) => a.validation_error - b.validation_error)[0];
}

const card = (label, number, detail) => el("div", { class: "card" }, el("span", {}, label), el("b", {}, number), el("span", {}, detail));

function speedCard(n) {
  const [now, before] = [n.latency_ms || {}, original.latency_ms || {}];
  const detail = `${milliseconds(now.median)} instead of ${milliseconds(before.median)}`;
  const overlap = known(now.high) && known(before.low) && now.high >= before.low;
  if (overlap) return card("Its latency", "no clear gain", `${detail}, the intervals overlap`);
  return card("Its latency", change(now.median, before.median, ratio), `of the original: ${detail}`);
}

function lossCard(n) {
  const key = lossOf(n, "test_error") === null ? "validation_error" : "test_error";
  const detail = `${key.split("_")[0]} ${measure.word} ${measure.show(n[key], 1)} instead of ${measure.show(original[key], 1)}`;
  return card("Its loss", lossWords(lossOf(n, key)), detail);
}

function startHead() {
  say("eyebrow", `archwright compress · run ${text(result.run)}`);
  say("title", `${result.model}, shrunk for ${result.task}`);
  say("headline", data.headline);
  const n = halfSize();
  const about = n ? [card("Best of half the size or less", percent(n.nonembedding_share), `${count(n.nonembedding_parameters)} of ${count(original.nonembedding_parameters)} non-embedding parameters`), lossCard(n), speedCard(n)] : [];
  const volume = known(result.hypervolume) ? `, hypervolume ${result.hypervolume.toFixed(3)}` : "";
  byId("cards").append(...about, card("On the front", String(front.length), `of ${trials.length} trials${volume}, in ${seconds(result.seconds)}`));
  say("front-note", "Lower and further left is better. Click a point, use the arrow keys on the plot, or move the budget below it; "
    + "the choice is made on validation data." + (result.task_note ? ` ${result.task_note}` : ""));
  byId("key").append(...SYMBOLS.filter(([, , there]) => there === undefined || there).map(([name, shape]) => el("li", {}, svg("svg", { viewBox: "0 0 18 14", "aria-hidden": "true" }, shape), name)));
  say("footer", `${text(result.schema)}, archwright ${text(result.archwright)}. This file needs no network.`);
}

function drawAll() {
  drawFront();
  if (byId("progress-plot")) drawProgress();
  drawPredicted();
  drawPanels();
}

startHead();
startGallery();
startTable();
startFront();
startProgress();
startSections(data.sections);
startMade();
document.addEventListener("DOMContentLoaded", () => {
  drawAll();
  byId("front-plot").on("plotly_click", ({ points: [point] }) => { if (known(point.customdata)) choose(point.customdata); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
});
