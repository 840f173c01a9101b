/* pmap-conformance report
   Searches the index of search-0.js and so on, which is loaded when it is first needed. All of it happens in
   the page: nothing is sent anywhere. */
"use strict";

const MOST = 30;
/* Words of English that ask for nothing by themselves. */
const COMMON = new Set(("a an and any are as at be by can do does for from get has have how i if in is it me my of on "
  + "instead or replace several some that the then this to what when where which why with work works").split(" "));
/* Words that are on so many pages that they say little beside another. */
const EVERYWHERE = new Set("jax pmap shard_map jax.pmap jax.shard_map error".split(" "));
const PREFERRED = { page: 1.35, guide: 1.2, subject: 1.15, cause: 1.4, removed: 1.3, ended: 1.05, error: 1.25, warning: 1.15, signal: 1.4,
  statement: 0.8, program: 0.55, report: 0.45 };
const KINDS = { page: "page", guide: "documentation", subject: "subject", cause: "known issue", ended: "fixed issue", removed: "removed name",
  error: "error message", warning: "warning", signal: "process killed", statement: "documented claim", program: "test", report: "user report" };

/* What is searched for: words and names without the punctuation around them, but `x[0]` whole, and
   `devices[:]` for a part of the devices. A shape says nothing. A number or a letter alone, as a
   pasted call has them, is in every text. */
function termsOf(query) {
  const words = query.toLowerCase()
    .replace(/\b(?:b?float|complex|u?int|s|u|f|bf|pred|bool)\d*\[[\d,\s]*\]/g, " ")
    .replace(/\bdevices(\(\))?\s*\[[^\]]*:[^\]]*\]/g, "devices$1 devices[:]")
    .replace(/\b(\w+)\s*\[\s*(-?\d+)\s*\]/g, "$1[$2]").split(/[\s(),{}"'`]+/)
    .flatMap((word) => word.includes("=") ? [...split(word)] : [word])
    .map((word) => (word === "devices[:]" ? word : word.replace(/\[[^\]]*:[^\]]*\]?$/, "")).replace(/^[.:;=[\]]+|[.:;=[?!]+$/g, "").replace(/^(?!args)\w+\[(-?\d+)\]$/, "x[$1]"))
    .filter((word) => word.length > 0);
  const long = words.filter((word) => word.length > 1 && !/^[\d:]+\]?$/.test(word));
  const asking = long.filter((word) => !COMMON.has(word));
  const some = asking.length ? asking : long.length ? long : words;
  return [...new Set(some)].slice(0, 40);
}

/* `devices=jax.devices` asks for the argument and for what is passed. */
function split(word) {
  const at = word.indexOf("=");
  return [word.slice(0, at), word.slice(at + 1)].map((one) => one.replace(/\[.*$/, "").replace(/[\])]+$/, "")).filter(Boolean);
}

/* What else a term may be called: by another word for the same thing, without its module, or as one
   of many. */
const SAME = { inside: ["under"], within: ["under"], multihost: ["several processes"], "multi-host": ["several processes"],
  freezes: ["hangs"], stuck: ["hangs"], deadlock: ["hangs"],
  slow: ["slower", "extra communication", "all-reduces"], slower: ["extra communication"], segfault: ["sigsegv"],
  segfaults: ["sigsegv"], segmentation: ["sigsegv"], aborts: ["sigabrt"], abort: ["sigabrt"], nested: ["inside another"], oom: ["memory"], gpu: ["cuda"],
  "flax.jax_utils.replicate": ["device_put_replicated"], check_rep: ["check_vma"], gradient: ["grad"], gradients: ["grad"], plugin: ["plug-in", "platform"], "plug-in": ["plugin", "platform"], unequal: ["fewer"],
  recompiles: ["traced", "compiled"], recompile: ["traced", "compiled"], recompilation: ["traced", "compiled"], retraces: ["traced"],
  replication: ["check_vma", "varying"], pvary: ["pcast", "varying"], pickle: ["pickle.dumps"] };

function formsOf(term) {
  const some = [term, ...(SAME[term] ?? [])];
  if (term.length > 4 && /[a-z]s$/.test(term) && !term.endsWith("ss")) some.push(term.slice(0, -1));
  const name = /^(?:jax|jnp|np|flax|lax|multihost_utils|optax)\.(?:.*\.)?(\w{4,})$/.exec(term);
  if (name) some.push(name[1]);
  return some;
}

/* How well a term stands in a text: as words of it, at a word's beginning, within a word, not at all. */
function fit(term, text) {
  let at = text.indexOf(term);
  let best = 0;
  while (at >= 0 && best < 1) {
    const before = at === 0 || !/[a-z0-9_]/.test(text[at - 1]);
    const end = at + term.length;
    const after = end === text.length || !/[a-z0-9_]/.test(text[end]);
    best = Math.max(best, before && after ? 1 : before ? 0.7 : term.length > 3 ? 0.3 : 0);
    at = text.indexOf(term, at + 1);
  }
  return best;
}

/* Whether a title begins with the name that is asked for: it is about `jax.make_mesh` or
   `device_put_sharded`, and not about something that has to do with it. */
function isSubject(term, title) {
  const [name] = title.split(/[^a-z0-9_.]/, 1);
  if (name === term) return /[a-z][_.][a-z]/.test(name) && !EVERYWHERE.has(name);
  return name.startsWith("jax.") && name.endsWith(`.${term}`);
}

/* How well a term is one of an entry's tags: a known issue is about the first of them above all, a
   subject about each. */
function tagged(term, entry) {
  const at = entry.tagList.indexOf(term);
  if (at < 0) return 8 * fit(term, entry.tags);
  return at === 0 || entry.sort === "subject" || entry.sort === "page" ? 13 : 11;
}

/* How well a term stands in an entry. */
function stands(term, entry) {
  if (term === "devices[:]") return entry.tags.includes(term) ? 13 : 0;
  let best = 0;
  for (const [number, form] of formsOf(term).entries()) {
    const titled = isSubject(form, entry.title) ? 16 : 10 * fit(form, entry.title);
    const score = Math.max(titled, tagged(form, entry), 3 * fit(form, entry.text));
    best = Math.max(best, number ? 0.85 * score : score);
  }
  return best;
}

/* How much an entry is preferred to others that have the words: a removed name that has nothing to do
   with pmap is looked for by the whole name. */
function preferred(entry) {
  return entry.sort === "removed" && entry.weight === 0 ? 0.7 : PREFERRED[entry.sort] ?? 1;
}

/* The pages found, the best first, and the words that no page has.

   Every word counts by how few pages have it, so that a word which every page has adds nothing and
   takes nothing away: a page is ranked by the share of what was asked for that it has. */
function search(index, query) {
  const asked = query.toLowerCase().trim();
  const terms = termsOf(query);
  if (terms.length === 0) return { found: [], missing: [], complete: 0 };
  const table = terms.map((term) => index.map((entry) => stands(term, entry)));
  const counts = table.map((row) => row.reduce((sum, score) => sum + (score > 0 ? 1 : 0), 0));
  const missing = terms.filter((_, n) => counts[n] === 0);
  const weights = terms.map((term, n) => counts[n] === 0 ? 0
    : (EVERYWHERE.has(term) ? 0.25 : 1) * Math.log2(1 + index.length / counts[n]));
  const whole = weights.reduce((sum, weight) => sum + weight, 0);
  if (whole === 0) return { found: [], missing, complete: 0 };
  const scored = index.map((entry, n) => {
    let sum = 0;
    let had = 0;
    for (let t = 0; t < terms.length; t += 1) {
      sum += weights[t] * table[t][n];
      if (table[t][n] > 0) had += weights[t];
    }
    if (had === 0) return { entry, score: 0, had };
    let score = sum / whole;
    if (/[ =]/.test(asked)) { // a sentence, a call, an assignment: as it stands
      if (entry.sort === "page" && entry.tagList.includes(asked)) score += 16; // a page that answers this
      else if (entry.title.includes(asked)) score += 12;
      else if (entry.tags.includes(asked)) score += 9;
      else if (entry.text.includes(asked)) score += 4;
    }
    const share = had / whole;
    return { entry, score: score * share * preferred(entry) + share * Math.log2(1 + entry.weight) / 4, had };
  });
  const found = scored
    .filter((one) => one.had > 0)
    .sort((one, other) => other.score - one.score || (one.entry.href < other.entry.href ? -1 : 1))
    .map((one) => one.entry);
  const complete = scored.filter((one) => one.had > 0.999 * whole).length;
  return { found, missing, complete };
}

/* The entries with the texts that are searched, in lower case once and for all. */
function prepared(rows) {
  return rows.map(([sort, title, href, tags, text, weight, saidBy, holds]) => ({
    sort, href, weight, holds, shown: saidBy ? `${saidBy}: ${title}` : title,
    title: title.toLowerCase(), tags: tags.toLowerCase(), tagList: tags.toLowerCase().split(" · "),
    text: text.toLowerCase(),
  }));
}

let loading = null;

function loaded(root) {
  if (loading) return loading;
  self.pmapIndex = [];
  const parts = Array.from({ length: PARTS }, (_, number) => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${root}search-${number}.js`;
    script.onload = resolve;
    script.onerror = () => reject(new Error(`search-${number}.js is not beside this page`));
    document.head.append(script);
  }));
  loading = Promise.all(parts).then(() => prepared(self.pmapIndex));
  return loading;
}

function shown(form, { found, missing, complete }, asked) {
  const list = form.querySelector("ol");
  const said = form.querySelector("[role=status]");
  form.querySelector(".results").hidden = !asked;
  list.replaceChildren(...found.slice(0, MOST).map((entry) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const sort = document.createElement("span");
    link.href = document.body.dataset.root + entry.href;
    link.textContent = entry.shown;
    sort.className = "tag";
    sort.textContent = KINDS[entry.sort] ?? entry.sort;
    item.append(sort, " ", link);
    if (entry.holds) {
      const holds = document.createElement("span");
      holds.className = "holds";
      holds.textContent = entry.holds;
      item.append(" ", holds);
    }
    return item;
  }));
  const all = complete === found.length;
  const count = found.length === 1 ? "1 page" : found.length <= MOST ? `${found.length} pages` : `The best ${MOST}${all ? ` of ${found.length}` : ""} pages`;
  const part = all ? "" : complete === 0 ? "; none has every word" : complete === 1 ? "; 1 has every word" : `; ${complete} have every word`;
  const nowhere = missing.length ? ` No page has: ${missing.join(", ")}.` : "";
  said.textContent = !asked ? "" : found.length ? `${count}${part}. Enter opens the first.${nowhere}`
    : `Nothing found.${nowhere} Try fewer words, or one word of the error message.`;
}

/* Arrows go through the results, Escape goes back to the box. */
function keys(form, event) {
  const links = [...form.querySelectorAll("ol a")];
  const input = form.querySelector("input");
  const at = links.indexOf(document.activeElement);
  if (event.key === "ArrowDown" && links.length) {
    links[Math.min(at + 1, links.length - 1)].focus();
  } else if (event.key === "ArrowUp" && at >= 0) {
    (links[at - 1] ?? input).focus();
  } else if (event.key === "Escape") {
    input.focus();
    if (at < 0) form.querySelector(".results").hidden = true;
  } else {
    return;
  }
  event.preventDefault();
}

function asked() {
  const found = /[#&]find=([^&]*)/.exec(location.hash);
  try {
    return found ? decodeURIComponent(found[1].replace(/\+/g, " ")) : "";
  } catch {
    return "";
  }
}

function start(form) {
  const input = form.querySelector("input");
  const run = async () => {
    const query = input.value;
    try {
      const index = await loaded(document.body.dataset.root);
      if (query !== input.value) return;
      shown(form, search(index, query), query.trim());
    } catch (error) {
      form.querySelector(".results").hidden = false;
      form.querySelector("[role=status]").textContent = `The search does not work: ${error.message}.`;
    }
  };
  form.addEventListener("keydown", (event) => keys(form, event));
  input.addEventListener("focus", () => { loaded(document.body.dataset.root).catch(() => {}); }, { once: true });
  input.addEventListener("input", run);
  input.addEventListener("change", () => {
    // Remembered in the address, so that a search can be sent to somebody.
    const hash = input.value.trim() ? `#find=${encodeURIComponent(input.value.trim())}` : "#";
    history.replaceState(null, "", hash);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await run();
    form.querySelector("ol a")?.click();
  });
  if (asked()) {
    input.value = asked();
    run();
  }
}

/* The search box of every page: it needs this script. Without it the lists in the navigation are there. */
function box() {
  const form = document.createElement("form");
  form.className = "find";
  form.role = "search";
  form.innerHTML = `<label class="hear" for="find">Search: an error message, a call, an API or library name</label>
<input type="search" id="find" name="find" autocomplete="off" autocapitalize="none" spellcheck="false"
 placeholder="Search: error, call, API name …" aria-describedby="find-said">
<div class="results" hidden><p id="find-said" class="dim small" role="status"></p><ol class="found" id="found"></ol></div>`;
  return form;
}

function added() {
  const form = box();
  document.querySelector("header.site .name").after(form);
  start(form);
}

// The number of files of the index is told below.
if (["interactive", "complete"].includes(document.readyState)) queueMicrotask(added);
else document.addEventListener("DOMContentLoaded", added);
