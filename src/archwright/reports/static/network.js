// The chosen sub-network beside the plot, the gallery of all, and the table.
function change(value, base, format) {
  return known(value) && known(base) && base !== 0 ? format(value / base) : DASH;
}

const ratio = (value) => (value * 100).toFixed(0) + "\u00a0%";
const lossOf = (n, key) => measure.lost(n[key], original[key]);

// The 95 % interval of a loss, in the unit of the loss; empty where it was not measured.
function lossRange(n, key) {
  const { low, high, rows } = n[key === "test_error" ? "test_loss" : "loss"] || {};
  return known(low) && known(high) ? `${signed(low)} to ${signed(high)}, ${rows.toLocaleString("en")} rows` : "";
}

function against(n, key) {
  const range = lossRange(n, key);
  return el("span", {}, lossWords(lossOf(n, key)), range ? el("small", { class: "range" }, ` ${range}`) : "");
}

// Of language models: milliseconds for one more token of a text.
function written(n) {
  return (n.generation_ms || {}).median;
}

const writes = known(written((data.result || {}).original || {}));

function comparison(n) {
  const latency = n.latency_ms || {};
  const before = original.latency_ms || {};
  const rows = [
    [`Validation ${measure.word}`, measure.show(n.validation_error, 1), against(n, "validation_error")],
    [`Test ${measure.word}`, measure.show(n.test_error, 1), against(n, "test_error")],
    ["Non-embedding", count(n.nonembedding_parameters), percent(n.nonembedding_share)],
    ["Parameters", count(n.parameters), change(n.parameters, original.parameters, ratio)],
    ["FLOPs", count(n.flops), change(n.flops, original.flops, ratio)],
    ["Latency", milliseconds(latency.median), change(latency.median, before.median, ratio)],
    ...(writes ? [["Per written token", milliseconds(written(n)), change(written(n), written(original), ratio)]] : []),
    ["Size, int8", bytes(n.int8_bytes), change(n.int8_bytes, original.int8_bytes, ratio)],
  ];
  const head = ["", "here", "against original"].map((word) => el("span", { class: "head" }, word));
  const measured = rows.filter(([, here]) => here !== DASH || !(data.site || {}).live); // a running search knows little
  const cells = measured.flatMap(([name, here, against]) => [name, here, against]);
  return el("div", { class: "pairs" }, head, cells.map((cell) => el("span", {}, cell)));
}

const sizes = (wide) => ({ heads: result.heads || 1, units: result.units || 1, wide });

function showChosen() {
  const member = front[state.chosen];
  const panel = byId("chosen");
  if (!member) panel.replaceChildren(el("h3", {}, front.length ? "No sub-network within these limits" : "No sub-network to choose from"));
  else {
    const there = (data.site || {}).state === "finished" ? data.site.network : null;
    panel.replaceChildren(
      el("h3", {}, `Sub-network of trial ${text(member.trial)}`), comparison(member),
      ...(data.latency_setup ? [el("p", { class: "range" }, `Latency: ${data.latency_setup}.`)] : []),
      ...(layers(member).length ? [layerPicture(layers(member), sizes(true))] : []),
      ...(there ? [el("p", { class: "actions" }, el("a", { class: "button", href: there.replace("TRIAL", member.trial) }, "Look closer, try it, export"))] : []),
      ...Object.values(member.commands).map(command),
    );
  }
  for (const node of document.querySelectorAll("[data-member]")) {
    node.setAttribute(node.dataset.says, String(Number(node.dataset.member) === state.chosen));
  }
}

function startGallery() {
  byId("layers").replaceChildren(...front.map((member) => {
    const card = el("button", { class: "member", type: "button", "data-member": member.index, "data-says": "aria-pressed", "aria-pressed": "false" },
      el("strong", {}, `Trial ${text(member.trial)}`),
      el("small", {}, `${percent(member.nonembedding_share)} kept, ${measure.word} ${measure.show(member.validation_error, 1)}`),
      layerPicture(layers(member), sizes(false)));
    card.addEventListener("click", () => choose(member.index));
    return card;
  }));
  byId("layers").closest("section").hidden = !front.some((member) => layers(member).length);
  byId("kept-plot").closest("section").hidden = !front.some((member) => layers(member).length);
  if (front.length > 20 && !byId("layers").classList.contains("short")) foldGallery();
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
  { name: "Latency", value: (n) => (n.latency_ms || {}).median, show: (n) => timeCell(n.latency_ms) },
  ...(writes ? [{ name: "Per written token", value: written, show: (n) => timeCell(n.generation_ms) }] : []),
  { name: "int8", value: (n) => n.int8_bytes, show: (n) => bytes(n.int8_bytes) },
  { name: `Validation ${measure.word}`, value: (n) => n.validation_error, show: (n) => measure.show(n.validation_error, 2) },
  { name: `Test ${measure.word}`, value: (n) => n.test_error, show: (n) => measure.show(n.test_error, 2) },
  { name: `Loss, ${measure.unit}`, value: loss, show: lossCell },
];

// On test data where there is any, on validation data otherwise.
function lossKey(n) {
  return lossOf(n, "test_error") === null ? "validation_error" : "test_error";
}

function loss(n) {
  return lossOf(n, lossKey(n));
}

function lossCell(n) {
  return el("span", {}, signed(loss(n)), el("span", { class: "range" }, ` ${lossRange(n, lossKey(n))}`));
}

function timeCell(measured) {
  const { median, low, high } = measured || {};
  const range = known(low) && known(high) ? ` ${low.toFixed(2)}–${high.toFixed(2)}` : "";
  return el("span", {}, milliseconds(median), el("span", { class: "range" }, range));
}

function numberRow(n) {
  const choosing = el("button", { type: "button" }, `trial ${text(n.trial)}`);
  choosing.addEventListener("click", () => choose(n.index));
  const cells = COLUMNS.slice(1).map((column) => el("td", {}, column.show(n)));
  return el("tr", { "data-member": n.index, "data-says": "aria-selected", "aria-selected": "false" },
    el("td", {}, choosing), cells, el("td", {}, n.commands.export ? commandLine(n.commands.export) : DASH));
}

function baseRow(name, n) {
  return el("tr", { class: "base" }, el("td", {}, name), COLUMNS.slice(1).map((column) => el("td", {}, column.show(n))), el("td", {}, DASH));
}

function startTable() {
  byId("numbers").replaceChildren();
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
