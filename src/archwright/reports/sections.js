// A page that consists of sections only.
say("eyebrow", data.eyebrow);
say("title", data.title);
say("headline", data.lead);
say("footer", data.footer);
byId("cards").append(...data.cards.map(([label, number, detail]) => el("div", { class: "card" }, el("span", {}, label), el("b", {}, number), el("span", {}, detail))));
startSections(data.sections);
byId("contents").append(...data.sections.map(({ id, short }) => el("a", { href: `#${id}` }, short)));
document.addEventListener("DOMContentLoaded", () => {
  drawPanels();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawPanels);
});
