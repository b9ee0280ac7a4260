// One sub-network: its picture, both answers to a text, the export as a job, and errors by class.
const { run: runName, trial: trialNumber } = data.site;
const { member: own, commands: exportCommands } = data;

const percentBar = (label, share, strong) => {
  const fill = el("i", {});
  fill.style.width = `${100 * share}%`;
  return el("div", { class: "bar" }, el(strong ? "b" : "span", {}, label), el("div", { class: "track" }, fill), el("span", {}, percent(share, 1)));
};

// What a network answered: text that it wrote, a part of a text, tags of words, a similarity, a number, or labels.
function answerBody(answer) {
  if (answer.written !== undefined) {
    const end = `${answer.tokens} tokens in ${span(answer.seconds)}${answer.ended ? ", then it ended the text" : ""}`;
    return [el("p", { class: "written" }, answer.written || "(nothing)"), el("small", { class: "range" }, end)];
  }
  if (answer.answer !== undefined) return [el("p", { class: "written" }, answer.answer || "(it says that there is no answer)")];
  if (answer.words) {
    const words = answer.words.map(([word, tag, share]) => el("span", { class: tag === "O" ? "word" : "word tagged", title: percent(share, 1) }, word, tag === "O" ? "" : el("small", {}, tag)));
    return [el("p", { class: "words" }, words), ...(answer.cut ? [el("small", { class: "range" }, `${answer.cut} words did not fit`)] : [])];
  }
  if (known(answer.similarity)) return [el("p", { class: "written" }, `cosine similarity ${answer.similarity.toFixed(3)}`)];
  if (!answer.labels) return [el("p", {}, plain(answer.value))];
  const given = new Set(answer.given || []);
  const labels = Object.entries(answer.labels).sort((a, b) => b[1] - a[1]);
  const bars = labels.slice(0, 12).map(([name, share], place) => percentBar(answer.given && given.has(name) ? `${name} ✓` : name, share, answer.given ? given.has(name) : place === 0));
  return answer.given ? [...bars, el("small", { class: "range" }, given.size ? "✓ given: above the label's own threshold" : "no label is given")] : bars;
}

function answerPanel(title, answer) {
  const time = `${milliseconds(answer.milliseconds)}${answer.written === undefined ? "" : " per token"}`;
  return el("div", { class: "panel answer" }, el("h3", {}, title, el("small", {}, time)), answerBody(answer));
}

async function tryText(event) {
  event.preventDefault();
  byId("try-button").disabled = true;
  say("try-says", "Both networks are asked…");
  try {
    const answer = await ask(path("api", "try", trialNumber, runName), { text: byId("try-text").value, pair: byId("try-pair") ? byId("try-pair").value : "" });
    byId("answers").replaceChildren(answerPanel("Original", answer.original), answerPanel("This sub-network", answer.subnetwork));
    const ratio = quotient(answer.subnetwork.milliseconds, answer.original.milliseconds);
    say("try-says", known(ratio) ? `The small one took ${percent(ratio)} of the time.` : "");
  } catch (error) {
    say("try-says", error.message);
  }
  byId("try-button").disabled = false;
}

const chosenFormat = () => byId("formats").querySelector("input:checked").value;
const showCommand = () => byId("export-command").replaceChildren(command(exportCommands[chosenFormat()]));

function addExport({ name, bytes: size, download }) {
  if ([...byId("exports").children].some((item) => item.dataset.name === name)) return;
  byId("exports").append(el("li", { "data-name": name }, el("span", {}, name), el("span", {}, known(size) ? bytes(size) : ""), el("a", { href: download, download: "" }, "download")));
}

function parityFacts(parity) {
  const latency = parity.latency || {};
  const facts = [["format", parity.format], ["parameters", count(parity.parameters)], ["size", bytes(parity.bytes)], ["largest difference of logits", known(parity.difference) ? parity.difference.toExponential(1) : text(parity.difference)], ["limit", text(parity.limit)],
    ["latency", known(latency.median) ? `${milliseconds(latency.median)}, original ${milliseconds(latency.original)}` : DASH], ["folder", text(parity.folder)]];
  return el("dl", { class: "parity" }, facts.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));
}

async function follow(job) {
  const bar = byId("export-progress");
  bar.hidden = false;
  while (job.state === "running") {
    if (known(job.share)) bar.value = job.share; else bar.removeAttribute("value");
    say("export-says", job.says || `Working, ${span(job.seconds)}…`);
    await pause(700);
    job = await ask(path("api", "jobs", job.id));
  }
  bar.hidden = true;
  if (job.state !== "done") throw new Error(job.error || "The export was ended.");
  say("export-says", `Written and verified in ${span(job.seconds)}.`);
  if (job.result) byId("parity").replaceChildren(parityFacts(job.result));
  addExport({ name: job.download.split("/")[2], bytes: (job.result || {}).bytes, download: job.download });
}

async function startExport() {
  const format = chosenFormat();
  byId("export-button").disabled = true;
  byId("parity").replaceChildren();
  try {
    await follow(await ask(path("api", "export", trialNumber, runName), { to: format.replace("-int8", ""), int8: format.endsWith("-int8") }));
  } catch (error) {
    say("export-says", error.message);
    byId("export-progress").hidden = true;
  }
  byId("export-button").disabled = false;
}

const rowsOf = (matrix) => matrix.map((row) => row.reduce((sum, value) => sum + value, 0));

// A number of both networks for every class, label, tag or token.
function classTable({ measure: name, rows, format, lower_is_better: lower }) {
  const show = format === "share" ? (value) => percent(value, 1) : (value) => (known(value) ? value.toFixed(2) : DASH);
  const worse = (row) => (known(row.original) && known(row.subnetwork) ? (row.subnetwork - row.original) * (lower ? 1 : -1) : null);
  const loss = (row) => (format === "share" ? lossWords(worse(row)) : known(worse(row)) ? `${worse(row) > 0 ? "+" : ""}${worse(row).toFixed(2)}` : DASH);
  const body = rows.map((row) => el("tr", {}, [row.name, row.count.toLocaleString("en"), show(row.original), show(row.subnetwork), loss(row)].map((cell) => el("td", {}, cell))));
  const head = ["", "rows", `${name}, original`, `${name}, sub-network`, format === "share" ? "loss" : "change"].map((word) => el("th", { scope: "col" }, word));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${name} by class` }, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}

function matrixTable(title, matrix, labels) {
  const totals = rowsOf(matrix);
  const cell = (value, at, column) => {
    const node = el("td", { class: "heat" }, value.toLocaleString("en"));
    const share = totals[at] ? value / totals[at] : 0;
    node.style.backgroundColor = `color-mix(in srgb, var(--${at === column ? "accent" : "original"}) ${Math.round(30 * share)}%, transparent)`;
    return node;
  };
  const head = el("tr", {}, el("th", { scope: "col" }, "labelled ↓ answered →"), labels.map((name) => el("th", { scope: "col" }, name)));
  return el("div", {}, el("h3", {}, title), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Confusion matrix, ${title}` },
    el("table", { class: "matrix" }, el("thead", {}, head), el("tbody", {}, matrix.map((row, at) => el("tr", {}, el("th", { scope: "row" }, labels[at]), row.map((value, column) => cell(value, at, column))))))));
}

function textTable({ different, measure: name }) {
  const hasTarget = different.some((row) => row.target !== null);
  const keys = hasTarget ? ["text", "target", "original", "subnetwork"] : ["text", "original", "subnetwork"];
  const words = { text: "text", target: "right", original: name ? `${name}, original` : "original", subnetwork: name ? `${name}, sub-network` : "sub-network" };
  const rows = different.map((row) => el("tr", { class: row.change === "lost" ? "lost" : row.change === "won" ? "won" : "" }, keys.map((key) => el("td", { "data-label": words[key] }, row[key] === null ? DASH : String(row[key])))));
  const head = keys.map((key) => el("th", { scope: "col" }, words[key]));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Texts where both differ" }, el("table", { class: "texts" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}

async function inspect() {
  byId("inspect-button").disabled = true;
  say("inspect-says", "Both networks answer all test rows…");
  try {
    const found = await ask(path("api", "inspect", trialNumber, runName));
    const amount = known(found.rows) ? `${found.rows.toLocaleString("en")} test rows${known(found.agreement) ? `; both answer the same on ${percent(found.agreement, 1)} of ${found.of ? `their ${found.of}` : "them"}` : ""}. ` : "";
    say("inspect-says", amount + (found.note || ""));
    byId("inspect-button").parentNode.hidden = true;
    if (found.classes) byId("classes").replaceChildren(classTable(found.classes));
    if (found.confusion && found.labels.length <= 30) byId("confusions").replaceChildren(matrixTable("Original", found.confusion.original, found.labels), matrixTable("This sub-network", found.confusion.subnetwork, found.labels));
    byId("different").replaceChildren(found.different.length ? textTable(found) : el("p", { class: "note" }, "No text was answered differently."));
  } catch (error) {
    say("inspect-says", error.message);
    byId("inspect-button").disabled = false;
  }
}

byId("picture").prepend(layerPicture(own.keep || [], { heads: data.heads || 1, units: data.units || 1, wide: true }));
byId("try-form").addEventListener("submit", tryText);
byId("formats").addEventListener("change", showCommand);
byId("export-button").addEventListener("click", startExport);
byId("inspect-button").addEventListener("click", inspect);
data.site.exports.forEach(addExport);
showCommand();
