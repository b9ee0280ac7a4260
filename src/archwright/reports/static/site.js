// What served pages share: requests to our own server, states in words, and progress.
async function ask(address, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(address, { ...options, credentials: "same-origin" });
  const type = response.headers.get("content-type") || "";
  const answer = type.startsWith("application/json") ? await response.json() : { error: (await response.text()).trim() };
  if (!response.ok) throw new Error(answer.error || `The server answered ${response.status}.`);
  return answer;
}

const path = (...parts) => "/" + parts.map((part, place) => encodeURIComponent(String(part)).replaceAll("%2F", place === parts.length - 1 ? "/" : "%2F")).join("/");
const pause = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });

function span(seconds) {
  if (!known(seconds)) return "";
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 90) return `${whole} s`;
  return whole < 5400 ? `${Math.round(whole / 60)} min` : `${(whole / 3600).toFixed(1)} h`;
}

function progressWords(progress) {
  if (!progress) return "";
  const amount = known(progress.total) ? `${progress.done} of ${progress.total} ${progress.unit}` : `${progress.done} ${progress.unit}`;
  const left = known(progress.seconds_left) ? `, about ${span(progress.seconds_left)} left` : "";
  return `${progress.description}: ${amount}${left}`;
}

function progressBar(progress) {
  const bar = el("progress", { max: 1, "aria-label": progressWords(progress) || "working" });
  if (progress && known(progress.total) && progress.total > 0) bar.value = Math.min(progress.done / progress.total, 1);
  return bar;
}

const stateMark = (state) => el("span", { class: `state ${state}` }, state);

// Blocks of served pages.
BLOCKS.pictures = ({ pictures }) => el("div", { class: "pictures" }, pictures.map(({ title, keep, heads, units }) => el("div", { class: "panel" }, el("h3", {}, title), layerPicture(keep || [], { heads: heads || 1, units: units || 1, wide: true }))));
