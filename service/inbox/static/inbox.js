// What the pages do beyond what they can do without: local times, single keys, and a queue that does not move under somebody's hand.
"use strict";

(() => {
  const KEYS = "counterfoil-keys";

  // Times stand in UTC on the page; here they are in the reader's own.
  function localTimes(root) {
    const format = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      time.title = time.textContent;
      time.textContent = format.format(at);
    }
  }

  function keysAreOn() {
    try {
      return localStorage.getItem(KEYS) !== "off";
    } catch {
      return true;
    }
  }

  function isTyping(target) {
    return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
  }

  function toRow(step) {
    const rows = [...document.querySelectorAll(".row h2 a")];
    const at = rows.indexOf(document.activeElement);
    const row = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))];
    if (row) row.focus();
  }

  function toKey(key) {
    const found = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (!found) return false;
    if (found.tagName === "A") {
      found.click();
    } else if (found.tagName === "SUMMARY") {
      found.parentElement.open = true;
      (found.parentElement.querySelector("input:not([type=hidden]), textarea, select") || found).focus();
    } else {
      found.focus();
    }
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || !keysAreOn()) return;
    const key = event.key;
    if (key === "?") {
      const list = document.getElementById("shortcuts");
      if (!list) return;
      list.open = !list.open;
      if (list.open) list.querySelector("summary").focus();
    } else if (key === "j" || key === "k") {
      toRow(key === "j" ? 1 : -1);
    } else if (key.length !== 1 || !toKey(key)) {
      return;
    }
    event.preventDefault();
  });

  document.addEventListener("DOMContentLoaded", () => {
    localTimes(document);
    const box = document.getElementById("keys-on");
    if (box) {
      box.checked = keysAreOn();
      box.addEventListener("change", () => {
        try {
          localStorage.setItem(KEYS, box.checked ? "on" : "off");
        } catch {
          // A browser that keeps nothing uses the keys.
        }
      });
    }
  });

  // A queue that somebody points at, or is in with the keyboard, stays as it is until they leave it.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const queue = event.target;
    if (queue.id === "queue" && (queue.matches(":hover") || queue.contains(document.activeElement))) event.preventDefault();
  });
  // What comes in place of the queue once the session is over is the login: that page is shown whole.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target.id === "queue" && !event.detail.serverResponse.includes('id="queue"')) {
      event.detail.shouldSwap = false;
      location.reload();
    }
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    const swapped = document.getElementById(event.detail.target.id) || document.body;
    localTimes(swapped);
    if (swapped.id === "queue") {
      // The line above the list is a live region: it is told only when it says something else.
      const line = document.getElementById("queue-said");
      if (line && line.textContent !== swapped.dataset.said) line.textContent = swapped.dataset.said;
      return;
    }
    const told = swapped.querySelector("[data-focus], [aria-invalid=true], [role=alert]");
    if (told) {
      if (!told.matches("a, button, input, textarea, select")) told.tabIndex = -1;
      told.focus();
    }
  });

  function trouble() {
    const line = document.getElementById("trouble-line");
    if (!line) return;
    line.textContent = "The server did not answer as it should. Open the page again and see how it stands before you repeat anything.";
    line.hidden = false;
  }
  document.addEventListener("htmx:sendError", (event) => { if (event.target.id !== "queue") trouble(); });
  document.addEventListener("htmx:responseError", (event) => { if (event.detail.xhr.status >= 500) trouble(); });
})();
