"use strict";
// Filters questions by where they failed and by free text. Their state is the page's fragment: #failed=near,read&q=river
const forms = [...document.querySelectorAll("form.filter")];

function asked() {
  const fragment = location.hash.includes("=") ? location.hash.slice(1) : "";
  const parameters = new URLSearchParams(fragment);
  const failed = (parameters.get("failed") || "").split(",").filter(Boolean);
  return { failed: new Set(failed), text: parameters.get("q") || "" };
}

function apply() {
  const { failed, text } = asked();
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  for (const form of forms) {
    for (const box of form.querySelectorAll("[name=failed]")) box.checked = failed.has(box.value);
    if (form.q.value.trim() !== text) form.q.value = text;
    const items = [...form.nextElementSibling.children];
    for (const item of items) {
      const found = item.textContent.toLowerCase();
      const fits = !failed.size || failed.has(item.dataset.failure);
      item.hidden = !(fits && words.every((word) => found.includes(word)));
    }
    form.querySelector("output").textContent =
      `${items.filter((item) => !item.hidden).length} of ${items.length} shown`;
  }
}

function changed(event) {
  const form = event.currentTarget;
  const failed = [...form.querySelectorAll("[name=failed]:checked")].map((box) => box.value);
  const parameters = new URLSearchParams();
  if (failed.length) parameters.set("failed", failed.join(","));
  if (form.q.value.trim()) parameters.set("q", form.q.value.trim());
  history.replaceState(null, "", `#${String(parameters).replaceAll("%2C", ",") || "failed="}`);
  apply();
}

for (const form of forms) {
  form.hidden = false;
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
}
function follow() {
  apply();
  if (location.hash.includes("=")) document.getElementById("questions").scrollIntoView();
}

window.addEventListener("hashchange", follow);
follow();
