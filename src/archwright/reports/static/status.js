// The state of a run below its title: progress while it works, the way to go on with it when it was stopped.
function showStatus(news, amount) {
  const bar = news.progress ? [progressBar(news.progress)] : [];
  byId("status").replaceChildren(stateMark(news.state), el("span", {}, news.progress ? progressWords(news.progress) : amount), ...bar,
    ...(news.reason ? [el("span", { class: "notice" }, news.reason)] : []), ...(news.state === "stopped" ? [el("span", {}, "Go on with it:"), command(news.resume)] : []));
  showControls(news.state);
}

// Buttons beside the state, where runs may be started; they change with it only, so that nobody loses one under the hand.
async function showControls(now) {
  const box = byId("controls");
  if (!data.site.allow_start || box.dataset.state === now) return;
  box.dataset.state = now;
  const says = el("span", { role: "status" });
  const tell = (words) => { says.textContent = words; };
  const here = now === "running" && (await runsHere().catch(() => new Set())).has(data.site.run);
  if (box.dataset.state !== now) return;
  box.replaceChildren(...(now === "stopped" ? [resumeButton(data.site.run, tell)] : here ? [stopButton(data.site.run, tell)] : []), says);
}

const startStatus = () => document.querySelector(".page-head").append(el("div", { class: "status", id: "status", role: "status" }), el("p", { class: "actions", id: "controls" }));

// Calls `take` with whatever the server tells of the run; a finished one has another page.
function watchRun(address, take) {
  const source = new EventSource(address);
  source.addEventListener("news", (event) => { const news = JSON.parse(event.data); if (news.state === "finished") location.reload(); else take(news); });
  source.addEventListener("error", () => { if (!byId("lost")) byId("status").append(el("span", { class: "notice", id: "lost" }, "The connection to the server is lost; it is tried again.")); });
}
