"""What the HTML report looks like, and the script that makes it answer."""

from pgmult.core.markup import Markup

STYLE = Markup("""
:root { --faint: #6b6b6b; --mark: #fff2cc; }
@media (prefers-color-scheme: dark) { :root { --faint: #9a968f; --mark: #4d4113; } }

body { font-size: 15px; max-width: 76em; } h3 { font-size: 1em; margin: 1em 0 .2em; }
td, th { padding-right: .8em; } td.number { text-align: right; }
span.word { display: inline-block; margin-right: .9em; white-space: nowrap; }
span.word small { color: var(--faint); font-variant-numeric: tabular-nums; }
#topics tbody th { color: inherit; } #topics td.frex { width: 30%; }
button.pick { font: inherit; min-width: 2.2em; padding: .1em .4em; border: 1px solid var(--line);
  border-radius: 4px; background: var(--paper); color: inherit; cursor: pointer; }
#controls { position: sticky; top: 0; background: var(--paper); padding: .4em 0; margin: 0;
  z-index: 1; }
#controls label { margin-right: 1.5em; } #controls span { color: var(--faint); font-size: .9em; }
#controls input { vertical-align: middle; }
svg { max-width: 100%; height: auto; }
.graph text { text-anchor: middle; paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
.graph circle { fill: var(--paper); stroke: var(--soft); }
line.positive { stroke: var(--c1); stroke-opacity: .45; }
line.negative { stroke: var(--c0); stroke-opacity: .3; stroke-dasharray: 5 4; }
.matrix rect { width: 13px; height: 13px; } .matrix circle { fill: var(--faint); pointer-events:
  none; }
.r0, .b0, .r1 { fill: #f9efec; } .r2 { fill: #f4dcd6; } .r3 { fill: #eec8be; }
.r4 { fill: #e7b1a4; } .r5 { fill: #e0998a; } .r6 { fill: #d8826f; } .r7 { fill: #d06b56; }
.r8 { fill: #c8553d; } .b1 { fill: #eaf1f5; } .b2 { fill: #d5e2ea; } .b3 { fill: #bdd2de; }
.b4 { fill: #a2c0d1; } .b5 { fill: #86adc3; } .b6 { fill: #6899b4; } .b7 { fill: #4984a6; }
.b8 { fill: #2a6f97; }
.live [data-t] { cursor: pointer; }
.picked svg [data-t]:not(.on, .near) { opacity: .12; } .picked line.on { stroke-opacity: .9; }
.picked .matrix circle { opacity: .12; }
.picked text.on, .picked g.on text { font-weight: bold; } .picked g.on circle { fill: var(--mark); }
tr.on td { background: var(--mark); }
.panels { display: flex; flex-wrap: wrap; gap: .8em 1.2em; } .panels figure { margin: 0; }
.panels figcaption { font-weight: normal; font-size: .85em; margin: 0; }
svg.graph text, svg.matrix text { font-size: 11px; fill: var(--ink); }
details { margin: .35em 0; } summary { cursor: pointer; } summary small { color: var(--faint); }
details figure { margin: .6em 0 .9em 1.2em; max-width: 50em; }
details figcaption { font-weight: normal; font-size: .85em; }
blockquote { margin: 0 0 .2em; padding-left: .8em; border-left: 3px solid var(--line); }
.faint td, .faint summary { color: var(--soft); font-style: italic; }
.picked .panels [data-t]:not(.on) { opacity: .35; }
details.on > summary, tr.on th[scope=row] { background: var(--mark); }
@media (prefers-color-scheme: dark) {
  .r0, .b0, .r1 { fill: #2a2220; } .r2 { fill: #3a2722; } .r3 { fill: #4c2e26; } .r4 { fill:
  #60362b; } .r5 { fill: #763f31; }
  .r6 { fill: #8f4a39; } .r7 { fill: #a95743; } .r8 { fill: #c8553d; } .b1 { fill: #1d2529; } .b2
  { fill: #1f2d34; }
  .b3 { fill: #213641; } .b4 { fill: #23414f; } .b5 { fill: #254d5f; } .b6 { fill: #285b72; } .b7
  { fill: #2c6a87; } .b8 { fill: #3a86ad; }
}
@media (max-width: 44em) {
  #topics thead { display: none; }
  #topics, #topics tbody { display: block; }
  #topics tr { display: flex; flex-wrap: wrap; gap: 0 1em; padding: .5em 0;
    border-bottom: 1px solid var(--line); align-items: baseline; }
  #topics td { padding: 0; } #topics td.ranked { flex: 1 0 100%; }
  #topics td.frex { display: none; }
  #topics td.number::before {
    content: attr(data-label) " "; color: var(--faint); font-size: .85em; }
  #topics td.number { white-space: normal; }
  #controls { position: static; } #controls label:not([hidden]) { display: block; margin: .2em 0; }
  #controls label[hidden] { display: none; }
  svg.graph { max-width: none; width: 720px; } svg.matrix { max-width: none; }
}
""")

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
    button.setAttribute("aria-pressed", button.closest("[data-t]").dataset.t === picked);
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
