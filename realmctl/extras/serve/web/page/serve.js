import { bar, element, marked, shown } from "./dom.js";

const find = (id) => document.getElementById(id);
const MASK = "[MASK]";
const METHODS = { dense: "meaning (dense)", bm25: "words (BM25)", hybrid: "both (hybrid)" };
const FOUND = 10; // blocks of a search
let status = { edits_allowed: false };
let shownVersion = null; // the version of the blocks that the page shows, from which an edit is made
let latest = 0; // number of the latest question: a slow reply to an earlier one is not shown

/** Send a request and return its JSON. Throws an Error with the server's text. */
async function call(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  if (method !== "GET" && find("token").value) headers.Authorization = `Bearer ${find("token").value}`;
  let reply;
  try {
    reply = await fetch(`api/v1/${path}`, { method, headers, body: body && JSON.stringify(body) });
  } catch {
    throw new Error("The server cannot be reached. Is realmctl serve still running?");
  }
  const value = await reply.json().catch(() => ({ error: `The server answered ${reply.status}.` }));
  if (!reply.ok) throw Object.assign(new Error(value.error ?? `The server answered ${reply.status}.`), { code: reply.status });
  return value;
}

function say(text, isError = false) {
  find("message").textContent = text;
  find("message").className = isError ? "error" : "";
}

async function attempt(work, failed = () => {}) {
  try {
    return await work();
  } catch (error) {
    say(error.message, true);
    failed(error);
    return null;
  }
}

async function refreshStatus() {
  status = await call("GET", "status");
  const blocks = status.blocks.toLocaleString("en");
  find("served").textContent = `${blocks} blocks, version ${status.version}`;
  find("editing").hidden = !status.edits_allowed;
  if (!status.can_ask) {
    find("heading").textContent = "Search the blocks";
    find("what").textContent = status.can_fill ? "Words to search for, or a sentence with [MASK]" : "Words to search for";
    find("go").textContent = "Search";
    showMethods(status.search_methods, status.reranker);
    showFields(status.fields);
  }
  find("newer").hidden = !status.newer_models.length;
  find("newer").textContent = `Made since this server was started: ${status.newer_models.join(", ")}. Restart realmctl serve to use it.`;
  const spent = Object.entries(status.latency).map(([kind, one]) =>
    `${kind}: ${one.requests} ${one.requests === 1 ? "request" : "requests"}, median ${one.p50_ms.toFixed(0)} ms, 95 % within ${one.p95_ms.toFixed(0)} ms`);
  find("latency").textContent = spent.join(" · ");
}

/** Offer a filter, and say what it may name. */
function showFields(fields) {
  find("filtering").hidden = !status.search_methods.length;
  find("fields").textContent = `Fields: ${Object.entries(fields).map(([name, type]) => `${name} (${type})`).join(", ")}`;
}

/** Offer the methods of search, if there are several, and the reranker. Another choice searches again. */
function showMethods(names, reranker) {
  const offered = names.length > 1 ? names : [];
  if (!(offered.length || reranker) || find("methods").querySelector("input")) return;
  const change = () => find("question").value.trim() && run();
  find("methods").hidden = false;
  find("methods").append(...offered.map((name, place) => element("label", {},
    element("input", { type: "radio", name: "method", value: name, checked: place === 0, change }), METHODS[name] ?? name)));
  if (reranker) find("methods").append(element("label", {},
    element("input", { type: "checkbox", id: "rerank", checked: true, change }), `reranked by ${reranker}`));
}

/** Ask or fill what the field holds, and show it. Returns the best answer. */
async function run(before = null) {
  const text = find("question").value.trim();
  const number = ++latest;
  find("examples").hidden = true;
  const isFilling = text.includes(MASK) && status.can_fill;
  if (!isFilling && !status.can_ask) return search(text, number, before);
  say("Looking it up …");
  const start = performance.now();
  const reply = await attempt(() => isFilling
    ? call("POST", "fill", { sentence: text })
    : call("POST", "ask", { question: text, compare: true }));
  if (reply === null || number !== latest) return;
  shownVersion = reply.version;
  history.replaceState(null, "", address(text));
  const best = isFilling ? words(reply.with_retrieval) : reply.answers[0]?.text ?? "no answer";
  const spent = `${Math.round(performance.now() - start)} ms`;
  say(before === null ? `Answered in ${spent}.` : `${before.said} The answer was “${before.best}” and is “${best}”.`);
  find("result").replaceChildren(...(isFilling ? filledView(text, reply) : askedView(text, reply)));
  find("result").dataset.best = best;
  await attempt(refreshStatus);
}

/** Search for what the field holds, where no model answers questions. */
async function search(text, number, before) {
  say("Searching …");
  const start = performance.now();
  const reply = await attempt(() => call("POST", "search", {
    query: text, top: FOUND, method: document.querySelector("#methods input[name=method]:checked")?.value ?? null,
    rerank: find("rerank")?.checked ?? true, filter: find("filter").value.trim() || null }));
  if (reply === null || number !== latest) return;
  shownVersion = reply.version;
  history.replaceState(null, "", address(text));
  const found = `${reply.hits.length} ${reply.hits.length === 1 ? "block" : "blocks"} in ${Math.round(performance.now() - start)} ms.`;
  say(before === null ? found : `${before.said} ${found}`);
  find("result").replaceChildren(...(reply.hits.length ? foundView(reply) : [element("p", {}, find("filter").value.trim() ? "No block that passes the filter shares a word with it." : "No block shares a word with it.")]));
  find("result").dataset.best = reply.hits[0]?.title ?? "nothing";
  await attempt(refreshStatus);
}

/** The hits of a search, folded by document: the best block of each, and the others behind a line. */
function foundView(reply) {
  const documents = new Map();
  for (const hit of reply.hits) documents.set(hit.document, [...documents.get(hit.document) ?? [], hit]);
  const textOf = (hit) => marked(hit.text, hit.marks.map(([start, end]) => ({ start, end, rank: 1 })));
  const others = ([, ...rest]) => rest.length ? element("details", {},
    element("summary", {}, `${rest.length} more ${rest.length === 1 ? "block" : "blocks"} of this document`),
    ...rest.map((hit) => element("div", { class: "ablation" }, titleView(hit), fieldsView(hit), textOf(hit), copiesView(hit)))) : null;
  return [
    reply.nothing_close ? element("p", { class: "card" }, element("strong", {}, "Nothing close was found. "), "These are the nearest blocks.") : null,
    element("section", {}, element("h2", {}, "Found"),
      element("ol", { class: "candidates" }, ...[...documents.values()].map((hits) =>
        candidateView(hits[0], textOf, null, copiesView(hits[0]), fileView(hits[0].file), others(hits))))),
  ].filter(Boolean);
}

/** The address of a document's file, where the server tells it. Browsers open it from a copied address alone. */
function fileView(file) {
  return file?.startsWith("file:///") ? element("p", { class: "soft" }, element("a", { href: file }, decodeURI(file))) : null;
}

function copiesView(hit) {
  return hit.copies.length ? element("p", { class: "soft" }, `The same text: ${hit.copies.join(", ")}`) : null;
}

/** The address of what the page shows: the question, and the filter if there is one. */
function address(question, beside = {}) {
  const filter = find("filter").value.trim();
  return `#${new URLSearchParams({ q: question, ...(filter ? { f: filter } : {}), ...beside })}`;
}

/** Title and section of a block, as a link to its place in the document. */
function titleView(candidate) {
  const name = [candidate.title || candidate.document || "(no title)", candidate.section].filter(Boolean).join(" / ");
  return element("h3", {}, element("a", { href: address(find("question").value.trim(), { d: candidate.block }) }, name));
}

/** What the document of a block says of itself, and the page of a PDF. */
function fieldsView(candidate) {
  const told = Object.entries(candidate.fields ?? {}).map(([name, value]) => `${name}: ${[value].flat().join(", ")}`);
  if (candidate.page) told.unshift(`page ${candidate.page}`);
  return told.length ? element("p", { class: "soft fields" }, told.join(" · ")) : null;
}

/** Show the document of a block as text, with the block in view. */
async function showDocument(block) {
  const number = ++latest;
  find("examples").hidden = true;
  const reply = await attempt(() => call("GET", `document?id=${encodeURIComponent(block)}`));
  if (reply === null || number !== latest) return;
  const question = find("question").value.trim();
  const shownBlocks = reply.blocks.length < reply.count ? `, blocks ${reply.first} to ${reply.first + reply.blocks.length - 1} of ${reply.count}` : "";
  let section = "";
  say("");
  find("result").replaceChildren(element("section", {},
    question ? element("p", {}, element("a", { href: address(question) }, "Back to what was found")) : null,
    element("h2", {}, reply.title || reply.document),
    element("p", { class: "soft" }, element("code", {}, reply.document), shownBlocks),
    fileView(reply.file),
    ...reply.blocks.flatMap((one) => {
      const heading = one.section && one.section !== section ? element("h3", {}, one.section) : null;
      section = one.section;
      return [heading, element("p", { class: one.block === block ? "text card here" : "text" }, one.text)].filter(Boolean);
    })));
  find("result").querySelector(".here").scrollIntoView({ block: "center" });
}

/** Show what the address names: a document, or the answer to a question. */
async function follow() {
  const named = new URLSearchParams(location.hash.slice(1));
  if (named.get("q")) find("question").value = named.get("q");
  if (named.get("q")) find("filter").value = named.get("f") ?? "";
  find("filtering").open = find("filter").value !== "";
  if (named.get("d")) await showDocument(named.get("d"));
  else if (named.get("q")) await run();
  else return false;
  return true;
}

function words(masks) {
  return masks.map((mask) => mask.wordpiece).join(" ");
}

function askedView(question, reply) {
  const other = reply.without_retrieval;
  const parts = (block) => reply.answers.flatMap((answer, rank) =>
    answer.block === block ? [{ start: answer.start, end: answer.end, rank }] : []);
  return [
    sides(
      answersView("With retrieval", reply.answers, "from the blocks below"),
      answersView("Without retrieval", other?.answers ?? [], other ? `from the weights: ${other.source}` : "no model for it")),
    candidatesView("Evidence", reply.candidates, (candidate) => marked(candidate.text, parts(candidate.block)), question),
    other?.null_document == null ? null : nullView(other.null_document),
  ].filter(Boolean);
}

function filledView(sentence, reply) {
  const share = reply.candidates.find((candidate) => candidate.block === null)?.probability ?? 0;
  return [
    sides(
      filledSide("With retrieval", sentence, reply.with_retrieval, "all candidates, weighted by p(z|x)"),
      filledSide("Without retrieval", sentence, reply.without_retrieval, "the null document")),
    candidatesView("Evidence", reply.candidates.filter((candidate) => candidate.block !== null), (candidate) => element("div", {},
      element("p", { class: "text" }, candidate.text), masksView(candidate.masks)), null),
    nullView(share),
  ];
}

function sides(...both) {
  return element("div", { class: "sides" }, ...both);
}

function answersView(title, answers, from) {
  const [best, ...rest] = answers;
  return element("section", { class: "card" },
    element("h2", {}, title),
    element("p", { class: "answer" }, best?.text || "no answer"),
    rest.length ? element("ol", { start: "2", class: "rest" }, ...rest.map((answer) =>
      element("li", {}, answer.text, element("span", { class: "soft" }, ` score ${answer.score.toFixed(2)}`)))) : null,
    element("p", { class: "soft" }, from));
}

function filledSide(title, sentence, masks, from) {
  const made = element("p", { class: "answer" });
  sentence.split(MASK).forEach((part, place) => {
    if (place) made.append(element("mark", { class: "best" }, masks[place - 1]?.wordpiece ?? ""));
    made.append(part);
  });
  return element("section", { class: "card" }, element("h2", {}, title), made, masksView(masks),
    element("p", { class: "soft" }, from));
}

function masksView(masks) {
  return element("ul", { class: "masks" }, ...masks.map((mask) =>
    element("li", {}, mask.wordpiece, element("span", { class: "soft" }, ` ${shown(mask.probability)}`))));
}

function nullView(share) {
  return element("section", { class: "card null" },
    element("h2", {}, "Null document"),
    bar(share, "p(∅|x)"),
    element("p", { class: "soft" }, "The share of the empty document, which the pre-trained model may choose instead of a block."));
}

function candidatesView(title, candidates, textOf, question) {
  return element("section", {},
    element("h2", {}, title),
    element("ol", { class: "candidates" }, ...candidates.map((candidate) => candidateView(candidate, textOf, question))));
}

function candidateView(candidate, textOf, question, ...beside) {
  const below = element("div", { "aria-live": "polite" });
  const about = `block ${candidate.block}`;
  return element("li", { class: "card" },
    element("div", { class: "head" }, titleView(candidate), candidate.score === undefined
      ? bar(candidate.probability, "p(z|x)") : element("span", { class: "soft" }, `score ${candidate.score.toPrecision(4)}`)),
    fieldsView(candidate),
    textOf(candidate),
    ...beside,
    element("div", { class: "row" },
      element("code", { class: "soft" }, candidate.block),
      question === null ? null : button("Without it", `Answer without ${about}`, () => leaveOut(question, candidate, below)),
      status.edits_allowed ? button("Edit", `Edit ${about}`, () => edit(candidate, below)) : null,
      status.edits_allowed ? button("Remove", `Remove ${about}`, () => remove(candidate, below)) : null),
    below);
}

function button(text, label, click) {
  return element("button", { type: "button", "aria-label": label, click }, text);
}

async function leaveOut(question, candidate, below) {
  const found = await attempt(() => call("POST", "without", { question, without: [candidate.block] }));
  if (found === null) return;
  const held = found.still_held_by.join(", ") || "none";
  below.replaceChildren(element("div", { class: "ablation" },
    element("p", {}, "Without this block: ", element("strong", {}, found.answers[0]?.text ?? "no answer")),
    element("p", { class: "soft" },
      `Probability of “${found.answer}”: ${shown(found.probability_before)} with it, ${shown(found.probability_after)} without. `
      + `Blocks read that still hold it: ${held}.`)));
}

function edit(candidate, below) {
  const id = `edit-${candidate.block}`;
  const text = element("textarea", { id, rows: "6" });
  text.value = candidate.text;
  below.replaceChildren(element("form", {
    submit: (event) => {
      event.preventDefault();
      change("PUT", candidate, { text: text.value, version: shownVersion }, event.target);
    },
  },
  element("label", { for: id }, `New text of block ${candidate.block}`), text,
  element("div", { class: "row" }, element("button", { type: "submit", class: "main" }, "Save"),
    button("Cancel", "Cancel the edit", () => below.replaceChildren()))));
  text.focus();
}

function remove(candidate, below) {
  below.replaceChildren(element("div", { class: "ablation" },
    element("p", {}, `Remove block ${candidate.block}? The version with it is kept on disk.`),
    element("div", { class: "row" },
      button("Remove it", `Confirm: remove block ${candidate.block}`, (event) =>
        change("DELETE", candidate, null, event.target.closest(".ablation"))),
      button("Cancel", "Cancel the removal", () => below.replaceChildren()))));
  below.querySelector("button").focus();
}

/** Send an edit, then ask the question again. */
async function change(method, candidate, body, form) {
  const version = method === "DELETE" ? `&version=${encodeURIComponent(shownVersion)}` : "";
  await save(method, `blocks?id=${encodeURIComponent(candidate.block)}${version}`, body, form);
}

/** Ask for the token within the form that needs it, so that what was written stays in view. */
function askForToken(form) {
  const own = find("token");
  own.setAttribute("aria-invalid", "true");
  if (form.id === "add") return own.focus(); // the field stands above this form
  let field = form.querySelector("input.token");
  if (field === null) {
    const id = `token-${Math.random().toString(36).slice(2)}`;
    field = element("input", { id, class: "token", type: "password", autocomplete: "off", spellcheck: "false", "aria-invalid": "true",
      input: () => { own.value = field.value; } });
    form.querySelector(".row").before(element("label", { for: id }, "Token for edits"), field);
  }
  field.value = own.value;
  field.select();
  field.focus({ preventScroll: false });
}

async function save(method, path, body, form) {
  if (!find("token").value) {
    say("Edits need the token that realmctl serve printed when it started.", true);
    askForToken(form);
    return false;
  }
  const best = find("result").dataset.best ?? null;
  for (const one of form.querySelectorAll("button")) one.disabled = true;
  say("Making the next version …");
  const made = await attempt(() => call(method, path, body), (error) => error.code === 401 && askForToken(form));
  for (const one of form.querySelectorAll("button")) one.disabled = false;
  if (made === null) return false;
  find("token").removeAttribute("aria-invalid");
  const said = `Version ${made.version}: ${made.embedded} ${made.embedded === 1 ? "block" : "blocks"} embedded, ${made.taken_over} reused, in ${made.seconds.toFixed(1)} s.`;
  say(said);
  if (best !== null) await run({ best, said });
  else await attempt(refreshStatus);
  return true;
}

find("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
find("add").addEventListener("submit", async (event) => {
  event.preventDefault();
  const fields = Object.fromEntries(new FormData(event.target));
  if (await save("POST", "documents", { ...fields, version: status.version }, event.target)) event.target.reset();
});
await attempt(refreshStatus);
addEventListener("hashchange", follow);
if (!(await follow())) {
  find("question").focus();
  find("examples").hidden = !status.examples?.length;
  find("examples").replaceChildren(element("p", { class: "soft" }, "For example:"), element("div", { class: "row" },
    ...(status.examples ?? []).map((example) => button(example, `Example: ${example}`, () => {
      find("question").value = example;
      run();
    }))));
}
