/* pmap-conformance report
   Adds what reading does not need: copying, and filters that the address remembers. */
"use strict";

document.documentElement.classList.add("js"); // before anything is drawn

function copying() {
  for (const box of document.querySelectorAll(".copied")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = box.closest("[data-copy]")?.dataset.copy ?? "Copy";
    box.append(button);
    button.addEventListener("click", async () => {
      const text = button.parentElement.querySelector("pre").textContent;
      const said = button.textContent;
      button.textContent = (await copied(text)) ? "Copied" : "Select it and copy by hand";
      setTimeout(() => { button.textContent = said; }, 1500);
    });
  }
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/* What is chosen stands in the address, so that a filtered page can be sent to somebody. */
function remembering() {
  const chosen = new URLSearchParams(location.hash.slice(1));
  for (const box of document.querySelectorAll("[data-remember]")) {
    for (const input of box.querySelectorAll("input")) {
      const value = chosen.get(input.name);
      if (value === null) continue;
      if (input.type === "search") input.value = value;
      else input.checked = input.value === value;
    }
    box.addEventListener("input", () => {
      const now = new URLSearchParams();
      for (const input of box.querySelectorAll("input")) {
        const said = input.type === "search" ? input.value : input.checked && !input.defaultChecked;
        if (said) now.set(input.name, input.value);
      }
      history.replaceState(null, "", "#" + now);
    });
  }
}

function filtering() {
  for (const input of document.querySelectorAll("input[data-filter]")) {
    const rows = [...document.querySelectorAll(input.dataset.filter)];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const apply = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      rows.forEach((row, i) => { row.hidden = !words.every((word) => texts[i].includes(word)); });
    };
    input.addEventListener("input", apply);
    apply();
  }
}

/* What the reader chose stands in the address of every page: ?use=pmap&from=0.8.3&to=0.12.0.1. */
const USES = { pmap: "jax.pmap (default)", legacy: "jax.pmap with jax_pmap_shmap_merge=False", shard_map: "jax.shard_map" };
const PROCESSES = { one: "one process", several: "several processes" };
const LIBRARIES = ["flax"]; // ?flax=0.12.0&flax-to=0.12.8, or ?flax=none
const NAMES = ["use", "from", "to", "processes", ...LIBRARIES.flatMap((one) => [one, `${one}-to`])];

function choice() {
  const asked = new URLSearchParams(location.search);
  const found = {};
  for (const name of NAMES) if (asked.get(name)) found[name] = asked.get(name);
  return found;
}

function queryOf(chosen) {
  const now = new URLSearchParams();
  for (const name of NAMES) if (chosen[name]) now.set(name, chosen[name]);
  const text = now.toString();
  return text ? `?${text}` : "";
}

/* The page of the chosen upgrade, relative to the site's top; "" where there is none. */
function upgradeOf(chosen) {
  const found = UPGRADES.find(([use, from, to]) => use === (chosen.use ?? "pmap")
    && from === chosen.from && to === chosen.to);
  return found ? found[3] : "";
}

/* The implementation that a use means in a version. */
function implementationOf(use, jax) {
  if (use === "shard_map") return "shard_map";
  if (use === "legacy") return "legacy_pmap";
  const [major, minor] = jax.split(".").map(Number);
  return major === 0 && minor < 8 ? "legacy_pmap" : "new_pmap";
}

function choosing() {
  const form = document.querySelector("form[data-chooser]");
  if (!form) return;
  const fields = form.elements;
  // What a browser has kept of an earlier visit gives way to the address.
  const follow = () => {
    form.reset();
    for (const [name, value] of Object.entries(choice())) {
      const field = fields[name];
      const known = !field?.options || [...field.options].some((one) => one.value === value);
      if (field && known) field.value = value;
    }
    if (Object.keys(choice()).length) apply();
  };
  const said = form.querySelector("[data-chooser-said]");
  const now = () => Object.fromEntries(NAMES.map((name) => [name, fields[name]?.value ?? ""]));
  const apply = () => {
    const chosen = now();
    said.textContent = upgradeOf(chosen) ? "" : "There is no such upgrade: the versions are in the wrong order, or the API was not run there.";
    try {
      history.replaceState(null, "", (queryOf(chosen) || location.pathname) + location.hash);
    } catch { /* an address on the disk that may not change: links carry the choice all the same */ }
    marking(chosen);
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const chosen = now();
    const path = upgradeOf(chosen);
    if (path) location.href = path + queryOf(chosen);
    else apply();
  });
  addEventListener("pageshow", follow);
  addEventListener("popstate", follow);
  follow();
}

/* The choice goes along with every link within the site. */
function carrying() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || link.origin !== location.origin || link.protocol !== location.protocol) return;
    if (link.getAttribute("href").startsWith("#") || link.search) return;
    const form = document.querySelector("form[data-chooser]");
    const chosen = form && location.search
      ? Object.fromEntries(NAMES.map((name) => [name, form.elements[name]?.value ?? ""])) : choice();
    link.search = queryOf(chosen);
  }, true);
}

/* Cells that do not say of which version they are have that of the head of their column. */
function labelling() {
  for (const table of document.querySelectorAll("table.by-jax")) {
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
    for (const row of [...table.tBodies].flatMap((body) => [...body.rows])) {
      if (row.cells.length !== heads.length) continue;
      heads.forEach((head, at) => Object.assign(row.cells[at].dataset, head.dataset));
    }
  }
}

/* The column of the chosen version first, the rows of the chosen implementation first. */
function marking(chosen) {
  for (const cell of document.querySelectorAll(".chosen")) cell.classList.remove("chosen");
  for (const [what, ...versions] of columns(chosen)) {
    for (const version of versions.filter(Boolean)) {
      for (const cell of document.querySelectorAll(`[data-${what}="${CSS.escape(version)}"]`)) {
        cell.classList.add("chosen");
      }
    }
  }
}

/* The chosen versions, from and to, of what tables have columns of. */
function columns(chosen) {
  return [["jax", chosen.from, chosen.to], ...LIBRARIES.map((one) => [one, chosen[one], chosen[`${one}-to`]])];
}

function placing(chosen) {
  for (const row of document.querySelectorAll("table.chosen-first tr")) {
    for (const [what, ...versions] of columns(chosen)) {
      for (const version of versions.filter(Boolean)) {
        const cell = row.querySelector(`:scope > [data-${what}="${CSS.escape(version)}"]`);
        if (cell) row.firstElementChild.after(cell);
      }
    }
  }
  const jax = chosen.to ?? chosen.from;
  if (!jax || !chosen.use) return;
  const used = new Set([chosen.from, jax].filter(Boolean).map((one) => implementationOf(chosen.use, one)));
  for (const body of document.querySelectorAll("table.chosen-first tbody")) {
    const rows = [...body.querySelectorAll(":scope > tr[data-implementation]")];
    for (const row of rows) {
      if (used.has(row.dataset.implementation)) row.classList.add("mine");
      else row.classList.add("aside");
    }
    body.prepend(...rows.filter((row) => used.has(row.dataset.implementation)));
  }
}

/* Whether a version is older than another. */
function older(one, other) {
  const [here, there] = [one, other].map((text) => text.split(".").map(Number));
  const at = here.findIndex((number, i) => number !== (there[i] ?? 0));
  return at < 0 ? there.length > here.length : here[at] < (there[at] ?? 0);
}

/* Whether what begins in a version of a library, or ends with one, concerns who chose its versions. */
function concerns({ library, since, upTo }, chosen) {
  const from = chosen[library], to = chosen[`${library}-to`];
  if (from === "none") return false;
  if (since) return !(from && !older(from, since)) && !(to && older(to, since));
  return !(to && upTo && older(upTo, to));
}

/* What the chosen versions of libraries leave out is folded. */
function folding(chosen) {
  for (const list of document.querySelectorAll("ul:has(> [data-library])")) {
    const aside = [...list.children].filter((one) => one.dataset.library && !concerns(one.dataset, chosen));
    if (!aside.length) continue;
    const box = document.createElement("details"), head = document.createElement("summary");
    const left = document.createElement("ul");
    const said = `${aside.length} hidden: not needed for ${librariesOf(chosen)}`, above = list.previousElementSibling;
    head.textContent = said;
    left.className = list.className;
    left.append(...aside);
    box.append(head, left);
    list.after(box);
    if (!list.children.length && above?.localName === "h3") { // a group without a line is a folded one
      head.textContent = `${above.textContent}: ${said}`;
      box.id = above.id;
      above.remove();
      list.remove();
    }
  }
}

/* The chosen versions of libraries, in words. */
function librariesOf(chosen) {
  return LIBRARIES.filter((one) => chosen[one] || chosen[`${one}-to`]).map((one) => chosen[one] === "none"
    ? `programs without ${one}`
    : `${one} ${[chosen[one] ?? "any", chosen[`${one}-to`]].filter(Boolean).join(" → ")}`).join(", ");
}

/* Where a screen is too narrow for all versions, the newest are shown first; the others are to the left. */
function newestFirst(chosen) {
  if (chosen.to ?? chosen.from) return;
  for (const box of document.querySelectorAll(".scroll:has(> table.by-jax)")) box.scrollLeft = box.scrollWidth;
}

/* The entry of the page that is open, in a navigation that is wider than the screen. */
function hereInSight() {
  const nav = document.querySelector("header.site nav");
  const here = nav?.querySelector("[aria-current]");
  if (here && nav.scrollWidth > nav.clientWidth) nav.scrollLeft = here.offsetLeft - nav.offsetLeft;
}

function saying(chosen) {
  if (document.querySelector("form[data-chooser]") || !Object.keys(chosen).length) return;
  const line = document.createElement("p");
  line.className = "chosen-line";
  line.dataset.chosen = "";
  const root = document.body.dataset.root;
  const words = [USES[chosen.use] ?? USES.pmap,
    [chosen.from, chosen.to].filter(Boolean).join(" → "), PROCESSES[chosen.processes], librariesOf(chosen)];
  line.append("You chose ", strong(words.filter(Boolean).join(", ")), ". ");
  const path = upgradeOf(chosen);
  if (path) line.append(anchor(root + path, "Upgrade page"), " · ");
  line.append(anchor(`${root}index.html`, "Change"));
  document.querySelector("main").before(line);
}

function strong(text) {
  const made = document.createElement("strong");
  made.textContent = text;
  return made;
}

function anchor(href, text) {
  const made = document.createElement("a");
  made.href = href;
  made.textContent = text;
  return made;
}

function chosenFilters(chosen) {
  const box = chosen.processes && document.getElementById(`places-${chosen.processes}`);
  if (box && !new URLSearchParams(location.hash.slice(1)).get("places")) box.checked = true;
  const use = chosen.use && document.getElementById(`use-${chosen.use}`);
  if (use) use.checked = true;
  if (chosen.use) for (const box of document.querySelectorAll("details[data-use]")) box.open = box.dataset.use === chosen.use;
}

/* Lines that many pages share stand in files of their own, as do the lists of their keys. */
function filling() {
  const lines = new Map(self.pmapLines ?? []);
  for (const list of document.querySelectorAll("[data-lines]")) {
    const keys = lines.get(list.dataset.lines)?.split(" ") ?? [];
    list.innerHTML = keys.map((key) => lines.get(key) ?? "").join("");
  }
}

/* What an address names is shown, though it be folded: not every browser unfolds it by itself. */
function unfolding() {
  const open = () => {
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let box = named?.closest("details"); box; box = box.parentElement.closest("details")) {
      box.open = true;
    }
    if (named?.closest("details")) named.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
}

/* A long line of code is read by moving its box, which a keyboard can do once it has the focus. */
function reachable() {
  for (const box of document.querySelectorAll("pre")) box.tabIndex = 0;
}

/* The search box is on every page, and its script in a file of its own. */
function findable() {
  const script = document.createElement("script");
  script.src = `${document.body.dataset.root}find.js`;
  document.head.append(script);
}

document.addEventListener("DOMContentLoaded", () => {
  findable();
  filling();
  reachable();
  copying();
  remembering();
  filtering();
  const chosen = choice();
  chosenFilters(chosen);
  labelling();
  choosing();
  carrying();
  marking(chosen);
  placing(chosen);
  folding(chosen);
  newestFirst(chosen);
  hereInSight();
  saying(chosen);
  unfolding();
});
