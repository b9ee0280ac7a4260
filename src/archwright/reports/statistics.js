// Ranks and their correlation, for the points that a reader has chosen.
const places = (xs, ys, members) => members.filter((at) => known(xs[at]) && known(ys[at]));

// Equal values share the mean of their ranks; 1 is the smallest.
function ranksOf(values) {
  const order = values.map((_, at) => at).sort((a, b) => values[a] - values[b]);
  const ranks = new Array(values.length);
  for (let start = 0; start < order.length;) {
    let end = start;
    while (end + 1 < order.length && values[order[end + 1]] === values[order[start]]) end += 1;
    for (let at = start; at <= end; at += 1) ranks[order[at]] = (start + end) / 2 + 1;
    start = end + 1;
  }
  return ranks;
}

function pearson(xs, ys) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [mx, my] = [mean(xs), mean(ys)];
  const sum = (term) => xs.reduce((total, _, at) => total + term(xs[at] - mx, ys[at] - my), 0);
  const spread = Math.sqrt(sum((x) => x * x) * sum((_, y) => y * y));
  return xs.length > 2 && spread > 0 ? sum((x, y) => x * y) / spread : null;
}

const spearman = (xs, ys) => pearson(ranksOf(xs), ranksOf(ys));
const decimal = (value) => (known(value) ? value.toFixed(2).replace("-", "−") : DASH);
