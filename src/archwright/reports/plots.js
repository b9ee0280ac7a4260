// How every plot looks: axes and frame in the colours of the page.
const heading = (words) => ({ text: words, standoff: 8, font: { size: 13 } });

function axis(extra) {
  return { gridcolor: style("--grid"), linecolor: style("--line"), zeroline: false, fixedrange: true, automargin: false, ...extra };
}

function frame(extra) {
  return {
    paper_bgcolor: "transparent", plot_bgcolor: "transparent", showlegend: false, dragmode: false, hovermode: "closest",
    margin: { l: 62, r: 20, t: 18, b: 50 }, font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: style("--soft") },
    hoverlabel: { bgcolor: style("--card"), bordercolor: style("--soft"), font: { color: style("--ink"), size: 13, family: getComputedStyle(document.body).fontFamily }, align: "left" }, ...extra,
  };
}

const QUIET = { displayModeBar: false, responsive: true };
