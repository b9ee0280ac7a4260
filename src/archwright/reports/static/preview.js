// The spaces of a model before anything is trained: example masks, sizes of random samples, and what cannot be removed.
const preview = data.preview;

function maskPicture(mask, shares, index) {
  const rows = mask.length;
  const heads = Math.max(...mask.map((row) => row.length), 1);
  const [cell, bar] = [10, 34];
  const width = heads * cell + 6 + bar;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${rows * cell}`, role: "img", width: "100%" });
  const kept = mask.flat().filter(Boolean).length;
  picture.append(svg("title", {}, `Sample ${index + 1}: ${kept} of ${mask.flat().length} heads kept`));
  mask.forEach((row, layer) => {
    row.forEach((on, head) => picture.append(svg("rect", {
      class: on ? "on" : "off", x: head * cell + 1, y: layer * cell + 1, width: cell - 2, height: cell - 2, rx: 1,
    })));
    const y = layer * cell + 2;
    const share = (shares || [])[layer];
    picture.append(svg("rect", { class: "off", x: heads * cell + 6, y, width: bar - 1, height: cell - 4, rx: 1 }));
    if (known(share)) picture.append(svg("rect", { class: "share", x: heads * cell + 6, y, width: share * (bar - 1), height: cell - 4, rx: 1 }));
  });
  return picture;
}

function histogram(shares) {
  const bins = 25;
  const counts = new Array(bins).fill(0);
  for (const share of shares) counts[Math.min(Math.max(Math.floor(share * bins), 0), bins - 1)] += 1;
  const tallest = Math.max(...counts, 1);
  const [width, height, base] = [420, 130, 108];
  const picture = svg("svg", { class: "histogram", viewBox: `0 0 ${width} ${height}`, role: "img" });
  picture.append(svg("title", {}, `Sizes of ${shares.length} random samples`));
  counts.forEach((number, index) => {
    const bar = svg("rect", { x: (index * width) / bins + 1, y: base - (number / tallest) * (base - 14), width: width / bins - 2, height: (number / tallest) * (base - 14) });
    bar.append(svg("title", {}, `${percent(index / bins)} to ${percent((index + 1) / bins)}: ${number} of ${shares.length}`));
    picture.append(bar);
  });
  picture.append(svg("line", { x1: 0, x2: width, y1: base + 0.5, y2: base + 0.5 }));
  for (const [at, anchor] of [[0, "start"], [0.25, "middle"], [0.5, "middle"], [0.75, "middle"], [1, "end"]]) {
    picture.append(svg("text", { x: at * width, y: base + 16, "text-anchor": anchor }, percent(at)));
  }
  return picture;
}

function quantile(sorted, share) {
  return sorted[Math.min(Math.floor(share * sorted.length), sorted.length - 1)];
}

function spaceCard(name, space) {
  const shares = (space.shares || []).filter(known).sort((a, b) => a - b);
  const networks = known(space.size_log10) ? `about 10^${space.size_log10.toFixed(1)} networks` : "networks not counted";
  const bits = known(space.bits) ? `, ${space.bits} switches` : "";
  const spread = shares.length ? `Half of the samples lie between ${percent(quantile(shares, 0.25))} and ${percent(quantile(shares, 0.75))}.` : "No samples.";
  return el("div", { class: "panel" }, el("h3", {}, name), el("p", {}, text(space.description)), el("p", {}, networks + bits),
    el("div", { class: "masks" }, (space.gallery || []).map((mask, index) => maskPicture(mask, (space.unit_shares || [])[index], index))),
    histogram(shares), el("p", {}, spread));
}

function startSizes() {
  const { parameters: total, embedding_parameters: fixed, nonembedding_parameters: free, smallest_parameters: smallest } = preview;
  const floor = known(smallest) && known(fixed) ? Math.max(smallest - fixed, 0) : null;
  const parts = [["fixed", fixed, "embeddings, always kept"], ["floor", floor, "kept by the smallest network"], ["free", known(free) && known(floor) ? free - floor : null, "can be removed"]];
  byId("sizes").append(
    el("div", { class: "whole", "aria-hidden": "true" }, parts.map(([kind, value]) => {
      const bar = el("i", { class: kind });
      bar.style.width = known(value) && known(total) ? `${(value / total) * 100}%` : "0";
      return bar;
    })),
    el("ul", { class: "key" }, parts.map(([kind, value, words]) => el("li", {}, el("span", { class: "swatch whole " + kind, style: "display:inline-block;height:11px;margin:0 6px 0 0" }, swatch(kind)), `${count(value)} ${words} (${known(value) && known(total) ? percent(value / total, 1) : DASH})`))),
  );
}

function swatch(kind) {
  const fill = el("i", { class: kind });
  fill.style.width = "100%";
  return fill;
}

startSizes();
byId("spaces").append(...Object.entries(preview.spaces).map(([name, space]) => spaceCard(name, space)));
