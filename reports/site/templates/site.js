/* pmap-conformance report
   Adds what reading does not need: copying, and filters that the address remembers. */
"use strict";

document.documentElement.classList.add("js"); // before anything is drawn

function copying() {
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
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

// The first page: where one is and where one goes, of the links that stand below.
function choosing() {
  const form = document.querySelector("form[data-chooser]");
  if (!form) return;
  const links = [...document.querySelectorAll("a[data-from]")];
  const [from, to] = [form.elements.from, form.elements.to];
  const fill = (select, words, chosen) => {
    select.replaceChildren(...words.map((word) => new Option(word, word, false, word === chosen)));
  };
  const goals = () => {
    const there = links.filter((link) => link.dataset.from === from.value);
    fill(to, there.map((link) => link.dataset.to), to.value);
  };
  fill(from, [...new Set(links.map((link) => link.dataset.from))], form.dataset.chooser);
  goals();
  const newest = links.findLast((link) => link.dataset.from === from.value
    && link.dataset.to.startsWith("new pmap"));
  if (newest) to.value = newest.dataset.to;
  from.addEventListener("change", goals);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const chosen = links.find((link) => link.dataset.from === from.value
      && link.dataset.to === to.value);
    if (chosen) location.href = chosen.href;
  });
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

document.addEventListener("DOMContentLoaded", () => {
  copying();
  remembering();
  filtering();
  choosing();
  unfolding();
});
