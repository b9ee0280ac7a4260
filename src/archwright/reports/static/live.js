// A run that is not finished: what is new is told by the server, and every picture follows without a reload.
const { live: watched, state: runState } = data.site;

const trialWords = (news) => `${trials.length}${known(news.planned_trials) ? ` of ${news.planned_trials}` : ""} trials`;

// Members of the front of a running search are trials; what they keep is told with the trial, once.
function takeFront(numbers) {
  const kept = new Map(front.map((member) => [member.trial, member.keep]));
  const chosen = front[state.chosen]?.trial;
  const byTrial = new Map(trials.map((trial) => [trial.trial, trial]));
  const members = numbers.map((number) => byTrial.get(number)).filter(Boolean);
  front.splice(0, front.length, ...members.map((trial, index) => ({ ...trial, config: trial.params, keep: trial.keep || kept.get(trial.trial) || null, index, commands: {} })));
  state.chosen = front.findIndex((member) => member.trial === chosen);
  if (state.chosen < 0) state.chosen = null;
}

function takeNews(news) {
  const seen = new Set(trials.map((trial) => trial.trial));
  const fresh = news.trials.map((trial, place) => [trial, news.hypervolume_over_time[place]]).filter(([trial]) => !seen.has(trial.trial));
  trials.push(...fresh.map(([trial]) => trial));
  result.hypervolume_over_time.push(...fresh.map(([, volume]) => volume));
  showStatus(news, trialWords(news));
  if (!fresh.length && news.front.length === front.length) return;
  takeFront(news.front);
  byId("status").dataset.trials = trials.length;
  say("headline", `${trials.length} trials so far, ${front.length} of them on the front.`);
  requestLive();
}

let redrawing = 0;

function requestLive() {
  if (redrawing) return;
  redrawing = setTimeout(() => {
    redrawing = 0;
    startTable();
    startGallery();
    refreshParallel();
    if (!byId("limits").children.length) startLimits();
    const member = best();
    if (!known(state.chosen) && member) state.chosen = member.index;
    mark();
    if (window.Plotly) drawAll();
  }, 250);
}

function startLive() {
  startStatus();
  byId("status").dataset.trials = trials.length;
  if (!watched) {
    byId("status").replaceChildren(stateMark(runState), el("a", { class: "button second", href: data.site.compare }, "Compare with other runs"));
    return;
  }
  showStatus(watched, trialWords(watched));
  watchRun(`${watched.events}?after=${trials.length}`, takeNews);
}
startLive();
