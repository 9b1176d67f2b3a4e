"""What the HTML report looks like, and the script that makes it answer."""

__all__ = ["SCRIPT", "STYLE"]

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff; margin: 2.5em auto;
  max-width: 76em; padding: 0 1.2em; }
h1 { font-size: 1.7em; margin: 0 0 .6em; } h2 { font-size: 1.15em; margin: 2em 0 .5em; }
h3 { font-size: 1em; margin: 1em 0 .2em; }
p.note { color: #555; margin: .2em 0 .8em; font-size: .9em; max-width: 62em; }
table { border-collapse: collapse; } td, th { padding: .22em .8em .22em 0; text-align: left;
  vertical-align: top; font-weight: normal; } th { color: #555; }
thead th { border-bottom: 1px solid #bbb; } td.number { text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
span.word { display: inline-block; margin-right: .9em; white-space: nowrap; }
span.word small { color: #777; font-variant-numeric: tabular-nums; }
#verdict { border-left: 4px solid #2a6f97; padding: .1em 0 .1em .4em; font-size: 1.05em; }
#verdict ul { margin: .3em 0; padding-left: 1.4em; max-width: 56em; }
#topics tbody th { color: inherit; } #topics td.frex { width: 30%; }
.wide { overflow-x: auto; }
button.pick { font: inherit; min-width: 2.2em; padding: .1em .4em; border: 1px solid #bbb;
  border-radius: 4px; background: #fff; color: inherit; cursor: pointer; }
button.pick:focus-visible, select:focus-visible, input:focus-visible {
  outline: 3px solid #2a6f97; outline-offset: 1px; }
#controls { position: sticky; top: 0; background: #fff; padding: .4em 0; margin: 0; z-index: 1; }
#controls label { margin-right: 1.5em; } #controls span { color: #777; font-size: .9em; }
#controls input { vertical-align: middle; }
svg { max-width: 100%; height: auto; }
svg text { font-size: 11px; fill: #333; }
.graph text { text-anchor: middle; paint-order: stroke; stroke: #fff; stroke-width: 3px; }
.graph circle { fill: #fff; stroke: #444; }
line.positive { stroke: #c8553d; stroke-opacity: .45; }
line.negative { stroke: #2a6f97; stroke-opacity: .3; stroke-dasharray: 5 4; }
.matrix rect { width: 13px; height: 13px; } .matrix circle { fill: #777; pointer-events: none; }
.r0, .b0, .r1 { fill: #f9efec; } .r2 { fill: #f4dcd6; } .r3 { fill: #eec8be; }
.r4 { fill: #e7b1a4; } .r5 { fill: #e0998a; } .r6 { fill: #d8826f; } .r7 { fill: #d06b56; }
.r8 { fill: #c8553d; } .b1 { fill: #eaf1f5; } .b2 { fill: #d5e2ea; } .b3 { fill: #bdd2de; }
.b4 { fill: #a2c0d1; } .b5 { fill: #86adc3; } .b6 { fill: #6899b4; } .b7 { fill: #4984a6; }
.b8 { fill: #2a6f97; }
.live [data-t] { cursor: pointer; }
.picked svg [data-t]:not(.on, .near) { opacity: .12; } .picked line.on { stroke-opacity: .9; }
.picked .matrix circle { opacity: .12; }
.picked text.on, .picked g.on text { font-weight: bold; } .picked g.on circle { fill: #ffd76a; }
tr.on td { background: #fff2cc; }
@media (max-width: 44em) {
  body { margin: 1em auto; padding: 0 .8em; } h1 { font-size: 1.35em; }
  #topics thead { display: none; }
  #topics, #topics tbody { display: block; }
  #topics tr { display: flex; flex-wrap: wrap; gap: 0 1em; padding: .5em 0;
    border-bottom: 1px solid #ddd; align-items: baseline; }
  #topics td { padding: 0; } #topics td.ranked { flex: 1 0 100%; }
  #topics td.frex { display: none; }
  #topics td.number::before { content: attr(data-label) " "; color: #777; font-size: .85em; }
  #topics td.number { white-space: normal; }
  #controls { position: static; } #controls label:not([hidden]) { display: block; margin: .2em 0; }
  #controls label[hidden] { display: none; }
  svg.graph { max-width: none; width: 720px; } svg.matrix { max-width: none; }
}
footer { margin-top: 3em; color: #777; font-size: .85em; }
"""

SCRIPT = """
"use strict";
const data = JSON.parse(document.getElementById("words").textContent);
const by = document.getElementById("by"), weight = document.getElementById("weight");
const lambda = weight.querySelector("input");
const scores = {
  probability: w => w[1], frex: w => w[2], lift: w => Math.exp(w[4]),
  relevance: w => lambda.value * w[3] + (1 - lambda.value) * w[4],
};
const written = [...document.querySelectorAll("#topics tr[data-t]")].map(row => {
  const cell = row.querySelector(".ranked");
  return [cell, data.topics[row.dataset.t], cell.innerHTML];
});
const given = by.value;

function shown(x) {
  if (Math.abs(x) < 1) return x.toFixed(3).replace(/^0/, "");
  return x.toFixed(Math.abs(x) < 100 ? 2 : 0);
}

function rank() {
  const score = scores[by.value];
  weight.hidden = by.value !== "relevance";
  weight.querySelector("output").textContent = Number(lambda.value).toFixed(2);
  document.getElementById("score").textContent = "words by " + by.value;
  for (const [cell, words, original] of written) {
    if (by.value === given && given !== "relevance") { cell.innerHTML = original; continue; }
    cell.replaceChildren(...[...words].sort((a, b) => score(b) - score(a)).slice(0, data.count)
      .map(word => {
        const span = document.createElement("span"), value = document.createElement("small");
        span.className = "word";
        value.textContent = shown(score(word));
        span.append(word[0] + " ", value);
        return span;
      }));
  }
}

let picked = null;
function pick(topic) {
  picked = topic === picked ? null : topic;
  for (const button of document.querySelectorAll("button.pick"))
    button.setAttribute("aria-pressed", button.textContent === picked);
  const marked = [...document.querySelectorAll("[data-t]")], near = new Set();
  document.body.classList.toggle("picked", picked !== null);
  for (const element of marked) {
    const topics = element.dataset.t.split(" ");
    element.classList.toggle("on", topics.includes(picked));
    if (element.tagName === "line" && topics.includes(picked)) topics.forEach(t => near.add(t));
  }
  for (const element of marked)
    element.classList.toggle("near", element.tagName === "g" && near.has(element.dataset.t));
}

by.addEventListener("change", rank);
lambda.addEventListener("input", rank);
document.addEventListener("click", event => {
  const element = event.target.closest("[data-t]");
  if (element) pick(element.dataset.t.split(" ")[0]);
});
document.addEventListener("keydown", event => {
  if (event.key === "Escape" && picked !== null) pick(picked);
});
document.body.classList.add("live");
document.getElementById("controls").hidden = false;
weight.hidden = by.value !== "relevance";
"""
