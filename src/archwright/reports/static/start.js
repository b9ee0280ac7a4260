// The form: every change is checked by the server, which answers with the equal command.
const optionFields = [...document.querySelectorAll("[data-option]")];
const asked = () => ({ name: byId("run-name").value, options: Object.fromEntries(optionFields.filter((field) => field.value.trim()).map((field) => [field.dataset.option, field.value.trim()])) });

let asking = 0;

async function showStart() {
  const turn = ++asking;
  if (!byId("run-name").value.trim()) { say("start-says", "It needs a name."); return; }
  try {
    const { command: line } = await ask("/api/command", asked());
    if (turn === asking) { byId("command").replaceChildren(command(line)); say("start-says", ""); }
  } catch (error) {
    if (turn === asking) say("start-says", error.message);
  }
}

async function startRun(event) {
  event.preventDefault();
  byId("start-button").disabled = true;
  try {
    const job = await ask("/api/start", asked());
    say("start-says", `${job.run} was started.`);
    await showJobs();
  } catch (error) {
    say("start-says", error.message);
  }
  byId("start-button").disabled = false;
}

function jobItem(job) {
  const stop = el("button", { type: "button", class: "quiet" }, "Stop");
  stop.addEventListener("click", async () => { await ask(path("api", "stop", job.run), {}).catch((error) => say("start-says", error.message)); await showJobs(); });
  return el("li", {}, stateMark(job.state === "done" ? "finished" : job.state === "running" ? "running" : "stopped"), el("a", { href: path("run", job.run) }, job.run), el("span", {}, job.error || job.says), ...(job.state === "running" ? [stop] : []));
}

async function showJobs() {
  const { jobs } = await ask("/api/jobs");
  byId("jobs").replaceChildren(...jobs.filter((job) => job.kind === "run").map(jobItem));
}

byId("form").addEventListener("input", showStart);
byId("form").addEventListener("submit", startRun);
showJobs();
setInterval(() => { if (!document.hidden) showJobs(); }, 2000);
