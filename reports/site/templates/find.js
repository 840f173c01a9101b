/* pmap-conformance report
   Searches the index of search.js, which is loaded when it is first needed. All of it happens in
   the page: nothing is sent anywhere. */
"use strict";

const MOST = 30;
/* Words of English that are in every text, or in none of a sort: they ask for nothing by themselves. */
const COMMON = new Set(("a an and any are as at be by can do does for from get has have how i if in is it my of on "
  + "or several some that the then this to what when where which why with").split(" "));
const PREFERRED = { page: 1.35, subject: 1.3, cause: 1.25, ended: 1.1, error: 1.2, warning: 1.15, signal: 1.4, statement: 1, program: 0.7 };

/* What is searched for: words and names without the punctuation around them, but `x[0]` whole.
   A letter alone, as a pasted call has them, is in every text, and so are common words. */
function termsOf(query) {
  const words = query.toLowerCase().split(/[\s(),]+/)
    .map((word) => word.replace(/^[.:;'"`]+|[.:;'"`]+$/g, ""))
    .filter((word) => word.length > 0);
  const long = words.filter((word) => word.length > 1);
  const asking = long.filter((word) => !COMMON.has(word));
  return (asking.length ? asking : long.length ? long : words).slice(0, 40);
}

/* What else a term may be called: by another word for the same place, or as one of many. */
const SAME = { inside: "under", within: "under", multihost: "several processes", "multi-host": "several processes" };

function formsOf(term) {
  const one = term.length > 4 && /[a-z]s$/.test(term) && !term.endsWith("ss") ? term.slice(0, -1) : "";
  return [term, SAME[term], one].filter((form) => form);
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

/* How well a term is one of an entry's tags: a cause is about the first of them above all, a
   subject about each. */
function tagged(term, entry) {
  const at = entry.tags.split(" · ").indexOf(term);
  if (at < 0) return 10 * fit(term, entry.tags);
  return at === 0 || entry.sort === "subject" ? 12 : 11;
}

/* How well a term stands in an entry. */
function stands(term, entry) {
  const titled = isSubject(term, entry.title) ? 13 : 10 * fit(term, entry.title);
  return Math.max(titled, tagged(term, entry), 3 * fit(term, entry.text));
}

/* How many of the terms an entry must have. A pasted message or call has numbers and names that no
   page knows; of few words each must be there. */
function wanted(terms, query) {
  return terms.length > 4 || query.includes("(") ? terms.length / 2 : terms.length;
}

/* The score of an entry; 0 where less than `enough` of what was asked for is in it. */
function scored(entry, terms, query, enough) {
  let sum = 0;
  let found = 0;
  for (const term of terms) {
    const score = Math.max(...formsOf(term).map((form) => stands(form, entry)));
    if (score > 0) found += 1;
    sum += score;
  }
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
  const enough = wanted(terms, asked);
  const found = ranked(index, terms, asked, enough);
  // No page has all of a few words: those that have any of them.
  return found.length || enough < terms.length ? found : ranked(index, terms, asked, 1);
}

function ranked(index, terms, asked, enough) {
  return index
    .map((entry) => ({ entry, score: scored(entry, terms, asked, enough) }))
    .filter((one) => one.score > 0)
    .sort((one, other) => other.score - one.score || (one.entry.href < other.entry.href ? -1 : 1))
    .map((one) => one.entry);
}

/* The entries with the texts that are searched, in lower case once and for all. */
function prepared(rows) {
  return rows.map(([sort, title, href, tags, text, weight, saidBy, holds]) => ({
    sort, href, weight, holds, shown: saidBy ? `${saidBy}: ${title}` : title,
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
    if (entry.holds) {
      const holds = document.createElement("strong");
      holds.className = "small";
      holds.textContent = entry.holds;
      item.append(" ", holds);
    }
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
