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

document.addEventListener("DOMContentLoaded", () => {
  copying();
});
