/* pmap-conformance report
   Searches the index of search.js, which is loaded when it is first needed. All of it happens in
   the page: nothing is sent anywhere. */
"use strict";

const MOST = 30;
const PREFERRED = { subject: 1.3, cause: 1.25, error: 1.2, warning: 1.15, signal: 1.4, statement: 1, program: 0.7 };

/* What is searched for: words and names without the punctuation around them, but `x[0]` whole.
   A letter alone, as a pasted call has them, is in every text. */
function termsOf(query) {
  const words = query.toLowerCase().split(/[\s(),]+/)
    .map((word) => word.replace(/^[.:;'"`]+|[.:;'"`]+$/g, ""))
    .filter((word) => word.length > 0);
  const long = words.filter((word) => word.length > 1);
  return (long.length ? long : words).slice(0, 40);
}

/* How well a term stands in a text: as words of it, at a word's beginning, anywhere, not at all. */
function fit(term, text) {
  let at = text.indexOf(term);
  let best = 0;
  while (at >= 0 && best < 1) {
    const before = at === 0 || !/[a-z0-9_]/.test(text[at - 1]);
    const end = at + term.length;
    const after = end === text.length || !/[a-z0-9_]/.test(text[end]);
    best = Math.max(best, before && after ? 1 : before ? 0.7 : 0.35);
    at = text.indexOf(term, at + 1);
  }
  return best;
}

/* Whether a title begins with the full name of what is asked for: it is about `jax.make_mesh`, and
   not about something that has to do with make_mesh. */
function isSubject(term, title) {
  const [name] = title.split(/[^a-z0-9_.]/, 1);
  return name.startsWith("jax.") && (name === term || name.endsWith(`.${term}`));
}

/* The score of an entry; 0 where too little of what was asked for is in it. */
function scored(entry, terms, query) {
  let sum = 0;
  let found = 0;
  for (const term of terms) {
    const named = entry.tags.split(" · ").includes(term) ? 11 : 10 * fit(term, entry.tags);
    const titled = isSubject(term, entry.title) ? 12 : 10 * fit(term, entry.title);
    const score = Math.max(titled, named, 3 * fit(term, entry.text));
    if (score > 0) found += 1;
    sum += score;
  }
  // A pasted message or call has numbers and names that no page knows; of few words each must be
  // there.
  const pasted = terms.length > 4 || query.includes("(");
  const enough = pasted ? terms.length / 2 : terms.length;
  if (found < enough) return 0;
  if (terms.length > 1) {
    if (entry.title.includes(query)) sum += 12;
    else if (entry.tags.includes(query)) sum += 9;
    else if (entry.text.includes(query)) sum += 4;
  }
  const share = sum / terms.length;
  return share * (PREFERRED[entry.sort] ?? 1) + Math.log2(1 + entry.weight) / 2;
}

function search(index, query) {
  const asked = query.toLowerCase().trim();
  const terms = termsOf(query);
  if (terms.length === 0) return [];
  return index
    .map((entry) => ({ entry, score: scored(entry, terms, asked) }))
    .filter((one) => one.score > 0)
    .sort((one, other) => other.score - one.score || (one.entry.href < other.entry.href ? -1 : 1))
    .map((one) => one.entry);
}

/* The entries with the texts that are searched, in lower case once and for all. */
function prepared(rows) {
  return rows.map(([sort, title, href, tags, text, weight]) => ({
    sort, href, weight, shown: title,
    title: title.toLowerCase(), tags: tags.toLowerCase(), text: text.toLowerCase(),
  }));
}

let loading = null;

function loaded(root) {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${root}search.js`;
    script.onload = () => resolve(prepared(self.pmapIndex));
    script.onerror = () => reject(new Error("search.js is not beside this page"));
    document.head.append(script);
  });
  return loading;
}

function shown(form, found, asked) {
  const list = form.querySelector("ol");
  const said = form.querySelector("[role=status]");
  list.replaceChildren(...found.slice(0, MOST).map((entry) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const sort = document.createElement("span");
    link.href = form.dataset.root + entry.href;
    link.textContent = entry.shown;
    sort.className = "tag";
    sort.textContent = entry.sort;
    item.append(sort, " ", link);
    return item;
  }));
  const more = found.length > MOST ? `, the first ${MOST} shown` : "";
  const many = found.length === 1 ? "1 result" : `${found.length} results`;
  said.textContent = !asked ? "" : found.length ? `${many}${more}. Enter opens the first.`
    : "Nothing found. Try fewer words, or one of the error message.";
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
  } else if (event.key === "Escape" && at >= 0) {
    input.focus();
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
      const index = await loaded(form.dataset.root);
      if (query === input.value) shown(form, search(index, query), query.trim());
    } catch (error) {
      form.querySelector("[role=status]").textContent = `The search does not work: ${error.message}.`;
    }
  };
  form.hidden = false;
  form.addEventListener("keydown", (event) => keys(form, event));
  input.addEventListener("focus", () => { loaded(form.dataset.root).catch(() => {}); }, { once: true });
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

document.addEventListener("DOMContentLoaded", () => {
  for (const form of document.querySelectorAll("form.find")) start(form);
});
