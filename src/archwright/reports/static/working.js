// A training, or a comparison of methods, that is not finished: its state and progress.
startStatus();
showStatus(data.site.live, "");
watchRun(data.site.live.events, (news) => showStatus(news, ""));
