// The list of runs: searched, sorted, ticked, and kept up to date by events of the server.
const listing = { rows: data.runs, sort: "changed", rising: false, ticked: new Set(), within: 0.5, here: new Set() };

// Share, loss and trial of what `select` answers for this limit; the rule is the server's.
function bestWithin(row) {
  const fitting = (row.best_within || []).filter(([limit]) => limit <= listing.within + 1e-9);
  return fitting.length ? fitting[fitting.length - 1].slice(1) : null;
}

const RUN_COLUMNS = [
  { key: "name", label: "Run", value: (row) => row.name },
  { key: "state", label: "State", value: (row) => row.state },
  { key: "trials", label: "Trials", number: true, value: (row) => row.trials },
  { key: "hypervolume", label: "Hypervolume", value: (row) => row.hypervolume },
  { key: "best", label: "Best within", number: true, value: (row) => (bestWithin(row) || [])[1] },
  { key: "changed", label: "Changed", value: (row) => row.changed },
];

function sparkline(values) {
  if (!values || values.length < 2) return [];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const place = (value, at) => `${(at / (values.length - 1)) * 106 + 2},${25 - ((value - low) / (high - low || 1)) * 22}`;
  const picture = svg("svg", { class: "spark", viewBox: "0 0 112 28", role: "img" });
  picture.append(svg("title", {}, `hypervolume from ${low.toFixed(3)} to ${high.toFixed(3)}`), svg("path", { d: `M${values.map(place).join("L")}` }));
  const [x, y] = place(values[values.length - 1], values.length - 1).split(",");
  picture.append(svg("circle", { cx: x, cy: y, r: 2.2 }));
  return [picture];
}

function stateCell(row) {
  const cell = el("td", { "data-label": "" }, stateMark(row.state));
  if (row.progress) cell.append(progressBar(row.progress), el("small", {}, progressWords(row.progress)));
  if (row.reason) cell.append(el("small", {}, row.reason));
  if (row.state === "stopped" && row.resume) cell.append(command(row.resume));
  if (row.state === "stopped" && data.site.allow_start) cell.append(resumeButton(row.name, tellRun));
  if (row.state === "running" && listing.here.has(row.name)) cell.append(stopButton(row.name, tellRun));
  return cell;
}

const tellRun = (words) => { byId("runs-say").textContent = words; byId("runs-say").hidden = !words; };

function runRow(row) {
  const tick = el("input", { type: "checkbox", "aria-label": `Compare ${row.name}` });
  tick.checked = listing.ticked.has(row.name);
  tick.disabled = !(row.front || []).length;
  tick.addEventListener("change", () => { if (tick.checked) listing.ticked.add(row.name); else listing.ticked.delete(row.name); showTicked(); });
  const best = bestWithin(row);
  const about = [row.model, row.task].filter(Boolean).join(", ");
  const bestWords = best ? [el("a", { href: path("network", best[2], row.name) }, `trial ${best[2]}`), el("small", {}, `${percent(best[0])} kept, loss ${signed(best[1])} ${row.unit || ""}`)] : [];
  return el("tr", { "data-run": row.name },
    el("td", {}, tick), el("td", {}, el("a", { href: path("run", row.name) }, row.name), el("small", {}, about)), stateCell(row),
    el("td", { class: "number", "data-label": "Trials" }, known(row.trials) ? `${row.trials}${row.state !== "finished" && known(row.planned_trials) ? ` of ${row.planned_trials}` : ""}` : ""),
    el("td", { "data-label": "Hypervolume" }, known(row.hypervolume) ? row.hypervolume.toFixed(3) : "", sparkline(row.sparkline)),
    el("td", { class: "number", "data-label": "Best" }, bestWords),
    el("td", { "data-label": "" }, known(row.changed) ? new Date(row.changed * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }) : ""));
}

function shownRows() {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const column = RUN_COLUMNS.find(({ key }) => key === listing.sort);
  const text = (row) => [row.name, row.model, row.task, row.state, row.method].join(" ").toLowerCase();
  const order = (a, b) => {
    const [one, two] = [column.value(a) ?? null, column.value(b) ?? null];
    if (one === null || two === null) return (two !== null) - (one !== null);
    const sign = typeof one === "string" ? one.localeCompare(two) : one - two;
    return listing.rising ? sign : -sign;
  };
  return listing.rows.filter((row) => words.every((word) => text(row).includes(word))).sort(order);
}

// Names from a to z, everything else from the largest; once more turns it round.
function sortBy(key) {
  listing.rising = listing.sort === key ? !listing.rising : key === "name";
  listing.sort = key;
  byId("sort").value = key;
  showRuns();
}

function headings() {
  return el("thead", {}, el("tr", {}, el("th", { scope: "col" }, el("span", { class: "hidden-words" }, "Compare")), RUN_COLUMNS.map(({ key, label, number }) => {
    const button = el("button", { type: "button" }, key === "best" ? `${label} ${percent(listing.within)}` : label);
    button.addEventListener("click", () => { sortBy(key); byId("list").querySelector(`[data-key=${key}] button`).focus(); });
    const head = el("th", { scope: "col", "data-key": key, ...(number ? { class: "number" } : {}) }, button);
    if (listing.sort === key) head.setAttribute("aria-sort", listing.rising ? "ascending" : "descending");
    return head;
  })));
}

function showRuns() {
  replaceRows(byId("list"), headings(), el("tbody", {}, shownRows().map(runRow)));
  byId("list").parentNode.hidden = !listing.rows.length;
  byId("empty").hidden = Boolean(listing.rows.length);
}

function showTicked() {
  byId("compare").disabled = listing.ticked.size < 2;
  byId("compare").textContent = listing.ticked.size ? `Compare ${listing.ticked.size} ticked` : "Compare ticked";
}

async function takeRuns(rows) {
  listing.rows = rows;
  if (data.site.allow_start && rows.some((row) => row.state === "running")) listing.here = await runsHere().catch(() => listing.here);
  showRuns();
}

function startRuns() {
  const within = () => { listing.within = Number(byId("within").value) / 100; say("within-value", percent(listing.within)); showRuns(); };
  byId("search").addEventListener("input", showRuns);
  byId("sort").append(...RUN_COLUMNS.map(({ key, label }) => el("option", { value: key }, label.toLowerCase())));
  byId("sort").value = listing.sort;
  byId("sort").addEventListener("change", () => sortBy(byId("sort").value));
  byId("within").addEventListener("input", within);
  byId("compare").addEventListener("click", () => { location.href = `/compare?${[...listing.ticked].map((name) => `run=${encodeURIComponent(name)}`).join("&")}`; });
  within();
  const source = new EventSource("/api/events");
  source.addEventListener("runs", (event) => { byId("connection").hidden = true; takeRuns(JSON.parse(event.data).runs); });
  source.addEventListener("error", () => { byId("connection").hidden = false; });
}
startRuns();
