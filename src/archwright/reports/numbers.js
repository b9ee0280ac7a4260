// The chosen sub-network beside the plot, the gallery of all, and the table.
function change(value, base, format) {
  return known(value) && known(base) && base !== 0 ? format(value / base) : DASH;
}

const ratio = (value) => (value * 100).toFixed(0) + "\u00a0%";
const lossOf = (n, key) => measure.lost(n[key], original[key]);

function comparison(n) {
  const latency = n.latency_ms || {};
  const before = original.latency_ms || {};
  const rows = [
    [`Validation ${measure.word}`, measure.show(n.validation_error, 1), lossWords(lossOf(n, "validation_error"))],
    [`Test ${measure.word}`, measure.show(n.test_error, 1), lossWords(lossOf(n, "test_error"))],
    ["Non-embedding", count(n.nonembedding_parameters), percent(n.nonembedding_share)],
    ["Parameters", count(n.parameters), change(n.parameters, original.parameters, ratio)],
    ["FLOPs", count(n.flops), change(n.flops, original.flops, ratio)],
    ["Latency", milliseconds(latency.median), change(latency.median, before.median, ratio)],
    ["Size, int8", bytes(n.int8_bytes), change(n.int8_bytes, original.int8_bytes, ratio)],
  ];
  const head = ["", "here", "against original"].map((word) => el("span", { class: "head" }, word));
  const cells = rows.flatMap(([name, here, against]) => [name, here, against]);
  return el("div", { class: "pairs" }, head, cells.map((cell) => el("span", {}, cell)));
}

// Breaks between words only, so that an option stays whole.
function commandLine(line) {
  return el("code", {}, line.split(" ").flatMap((word, index) => [index ? " " : "", el("span", {}, word)]));
}

function command(line) {
  const button = el("button", { class: "copy", type: "button", "aria-label": `Copy: ${line}` }, "copy");
  const code = commandLine(line);
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(code);
    button.textContent = (await copied(line)) ? "copied" : "selected";
  });
  return el("div", { class: "command" }, code, button);
}

async function copied(line) {
  try {
    await navigator.clipboard.writeText(line);
    return true;
  } catch {
    return document.execCommand("copy");
  }
}

const sizes = (wide) => ({ heads: result.heads || 1, units: result.units || 1, wide });

function showChosen() {
  const member = front[state.chosen];
  const panel = byId("chosen");
  if (!member) return panel.replaceChildren(el("h3", {}, "No sub-network to choose from"));
  panel.replaceChildren(
    el("h3", {}, `Sub-network of trial ${text(member.trial)}`), comparison(member),
    layerPicture(member.keep || [], sizes(true)), ...Object.values(member.commands).map(command),
  );
  for (const node of document.querySelectorAll("[data-member]")) {
    node.setAttribute(node.dataset.says, String(Number(node.dataset.member) === state.chosen));
  }
}

function startGallery() {
  say("layers-note", "One row per layer of the original, the first at the top: attention heads as cells, feed-forward units as a bar, filled where kept, a dashed line where none is left. "
    + "The pictures show how many are kept. Choose one to see its numbers.");
  byId("layers").append(...front.map((member) => {
    const card = el("button", { class: "member", type: "button", "data-member": member.index, "data-says": "aria-pressed", "aria-pressed": "false" },
      el("strong", {}, `Trial ${text(member.trial)}`),
      el("small", {}, `${percent(member.nonembedding_share)} kept, ${measure.word} ${measure.show(member.validation_error, 1)}`),
      layerPicture(member.keep || [], sizes(false)));
    card.addEventListener("click", () => choose(member.index));
    return card;
  }));
  if (front.length > 20) foldGallery();
}

function foldGallery() {
  const more = el("button", { class: "more", type: "button" }, `Show all ${front.length}`);
  more.addEventListener("click", () => { byId("layers").classList.remove("short"); more.remove(); });
  byId("layers").classList.add("short");
  byId("layers").after(more);
}

const COLUMNS = [
  { name: "Network", value: (n) => n.trial },
  { name: "Share", value: (n) => n.nonembedding_share, show: (n) => percent(n.nonembedding_share, 1) },
  { name: "Parameters", value: (n) => n.parameters, show: (n) => count(n.parameters) },
  { name: "FLOPs", value: (n) => n.flops, show: (n) => count(n.flops) },
  { name: "Latency", value: (n) => (n.latency_ms || {}).median, show: latencyCell },
  { name: "int8", value: (n) => n.int8_bytes, show: (n) => bytes(n.int8_bytes) },
  { name: `Validation ${measure.word}`, value: (n) => n.validation_error, show: (n) => measure.show(n.validation_error, 2) },
  { name: `Test ${measure.word}`, value: (n) => n.test_error, show: (n) => measure.show(n.test_error, 2) },
  { name: `Loss, ${measure.unit}`, value: loss, show: (n) => signed(loss(n)) },
];

// On test data where there is any, on validation data otherwise.
function loss(n) {
  const tested = lossOf(n, "test_error");
  return tested === null ? lossOf(n, "validation_error") : tested;
}

function latencyCell(n) {
  const { median, low, high } = n.latency_ms || {};
  const range = known(low) && known(high) ? ` ${low.toFixed(2)}–${high.toFixed(2)}` : "";
  return el("span", {}, milliseconds(median), el("span", { class: "range" }, range));
}

function numberRow(n) {
  const choosing = el("button", { type: "button" }, `trial ${text(n.trial)}`);
  choosing.addEventListener("click", () => choose(n.index));
  const cells = COLUMNS.slice(1).map((column) => el("td", {}, column.show(n)));
  return el("tr", { "data-member": n.index, "data-says": "aria-selected", "aria-selected": "false" },
    el("td", {}, choosing), cells, el("td", {}, commandLine(n.commands.export)));
}

function baseRow(name, n) {
  return el("tr", { class: "base" }, el("td", {}, name), COLUMNS.slice(1).map((column) => el("td", {}, column.show(n))), el("td", {}, DASH));
}

function startTable() {
  say("numbers-note", `${data.error_note} Share is of the original's ${count(original.nonembedding_parameters)} non-embedding parameters. `
    + "Loss is against the original, on test data where there is any. A heading sorts.");
  const body = el("tbody", {}, baseRow("original", original), result.supernet ? baseRow("super-network", supernet) : [], front.map(numberRow));
  const heads = COLUMNS.map((column) => el("th", { scope: "col" }, sorter(column, body)));
  byId("numbers").append(el("thead", {}, el("tr", {}, heads, el("th", { scope: "col" }, "Export"))), body);
}

function sorter(column, body) {
  const button = el("button", { type: "button" }, column.name);
  button.addEventListener("click", () => {
    const head = button.parentNode;
    const rising = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const key = (row) => { const value = column.value(front[row.dataset.member]); return known(value) ? value * (rising ? 1 : -1) : Infinity; };
    body.append(...[...body.querySelectorAll("[data-member]")].sort((a, b) => key(a) - key(b)));
  });
  return button;
}
