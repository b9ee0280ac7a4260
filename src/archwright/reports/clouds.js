// Architectures as points: traces by depth, and figures of the same shape as those of figures/parts.py.
const { axes = [], points = { hover: [], cells: [], groups: [] } } = data;
const everyone = points.hover.map((_, at) => at);
const markup = (words) => String(words).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const DEPTHS = [[0, "#f2b134"], [0.5, "#3f9b8f"], [1, "#8a6fe0"]];

function cloud(xs, ys, { size = 7, only = everyone, named = true } = {}) {
  const chosen = new Set(only);
  return points.groups.map(({ name, colour, symbol, members, shade }) => {
    const own = places(xs, ys, members).filter((at) => chosen.has(at));
    const scale = shade ? { color: own.map((at) => shade[at]), colorscale: DEPTHS, cmin: Math.min(...shade.filter(known)), cmax: Math.max(...shade.filter(known)), showscale: named, colorbar: { thickness: 10, outlinewidth: 0, title: { text: name } } } : { color: colour };
    return {
      type: "scatter", mode: "markers", x: own.map((at) => xs[at]), y: own.map((at) => ys[at]), text: own.map((at) => markup(points.hover[at])),
      marker: { size, symbol, opacity: 0.72, ...scale }, hovertemplate: "%{text}<br>%{x:.4~g}, %{y:.4~g}<extra></extra>",
      name: markup(name), legendgroup: shade ? "" : markup(name), showlegend: !shade && named,
    };
  });
}

function correlation(xs, ys, members = everyone) {
  const both = places(xs, ys, members);
  return { n: both.length, rho: spearman(both.map((at) => xs[at]), both.map((at) => ys[at])) };
}

// Ranks among the architectures that have both numbers.
function ranksAmong(xs, ys) {
  const both = places(xs, ys, everyone);
  const ranks = (values) => { const found = ranksOf(both.map((at) => values[at])); const all = values.map(() => null); both.forEach((at, place) => { all[at] = found[place]; }); return all; };
  return [ranks(xs), ranks(ys)];
}

// Values of many sizes, all positive, are easier to see on a logarithmic axis.
function scaleOf(values) {
  const numbers = values.filter(known);
  return numbers.length && Math.min(...numbers) > 0 && Math.max(...numbers) > 1000 * Math.min(...numbers) ? "log" : "linear";
}

const axisOf = (words, values) => ({ title: { text: markup(words) }, type: scaleOf(values), nticks: 6, exponentformat: "SI" });

function drawn(parts, { columns = 2, height = 420, width = 0 } = {}) {
  const layout = { grid: { pattern: "independent" }, meta: { panels: parts.length, columns: Math.min(columns, parts.length), height, width }, annotations: [], shapes: [] };
  const traces = parts.flatMap(({ title, traces: own, x, y }, place) => {
    const end = place ? place + 1 : "";
    layout[`xaxis${end}`] = x;
    layout[`yaxis${end}`] = y;
    if (title) layout.annotations.push({ text: `<b>${markup(title)}</b>`, xref: `x${end} domain`, yref: `y${end} domain`, x: 0, y: 1, xanchor: "left", yanchor: "bottom", showarrow: false, yshift: 4 });
    return own.map((trace) => ({ ...trace, xaxis: `x${end}`, yaxis: `y${end}`, showlegend: trace.showlegend && place === 0 }));
  });
  return { data: traces, layout };
}
