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

// Where runs may be started: goes on with a stopped one, or ends one that was started here. `done` is called after it.
function runButton(words, does, name, done) {
  const button = el("button", { type: "button", class: "button second", "aria-label": `${words} ${name}` }, words);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      done("");
      let job = await ask(path("api", does, name), {});
      while (job.state === "running" && button.isConnected) { // it goes when the run changes its state
        await pause(1000);
        job = await ask(path("api", "jobs", job.id));
      }
      if (job.state === "failed") throw new Error(job.error || "It ended at once.");
    } catch (error) {
      done(error.message);
      button.disabled = false;
    }
  });
  return button;
}
const resumeButton = (name, done) => runButton("Resume", "resume", name, done);
const stopButton = (name, done) => runButton("Stop", "stop", name, done);
const runsHere = async () => new Set((await ask("/api/jobs")).jobs.filter((job) => job.kind === "run" && job.state === "running").map((job) => job.run));

// New rows in place of old ones: who stood on a link or a button of a run stands there again.
function replaceRows(list, ...rows) {
  const at = document.activeElement;
  const run = list.contains(at) ? at.closest("[data-run]")?.dataset.run : undefined;
  list.replaceChildren(...rows);
  if (run === undefined) return;
  const row = [...list.querySelectorAll("[data-run]")].find((each) => each.dataset.run === run);
  [...(row?.querySelectorAll(at.tagName) || [])].find((each) => each.textContent === at.textContent)?.focus();
}

// Blocks of served pages.
BLOCKS.pictures = ({ pictures }) => el("div", { class: "pictures" }, pictures.map(({ title, keep, heads, units }) => el("div", { class: "panel" }, el("h3", {}, title), layerPicture(keep || [], { heads: heads || 1, units: units || 1, wide: true }))));
