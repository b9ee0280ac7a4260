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

const JOB_STATES = { running: "running", done: "finished", failed: "stopped", ended: "stopped" };
const tellJob = (words) => { say("start-says", words); showJobs(); };

// The last job of a run; one that ended or failed can be resumed as soon as its folder has a run.
function jobItem(job) {
  const button = job.state === "running" ? [stopButton(job.run, tellJob)] : job.state === "done" ? [] : [resumeButton(job.run, tellJob)];
  return el("li", { "data-run": job.run }, stateMark(JOB_STATES[job.state]), el("a", { href: path("run", job.run) }, job.run), el("span", {}, job.error || job.says), button);
}

let shownJobs = "";

async function showJobs() {
  const { jobs } = await ask("/api/jobs");
  const last = jobs.filter((job, at) => job.kind === "run" && jobs.findIndex((other) => other.run === job.run && other.kind === "run") === at);
  const now = JSON.stringify(last.map((job) => [job.id, job.state, job.says]));
  if (now === shownJobs) return;
  shownJobs = now;
  replaceRows(byId("jobs"), ...last.map(jobItem));
}

byId("form").addEventListener("input", showStart);
byId("form").addEventListener("submit", startRun);
showJobs();
setInterval(() => { if (!document.hidden) showJobs(); }, 2000);
