// SPDX-License-Identifier: Apache-2.0
"use strict";

// The theme is set before the first paint, so this script is not deferred. Storage can be forbidden for files.
const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
const store = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* it lasts for this page */ } };
const system = matchMedia("(prefers-color-scheme: dark)");
const theme = () => stored() || (system.matches ? "dark" : "light");
document.documentElement.dataset.theme = theme();

document.addEventListener("DOMContentLoaded", () => {
  const root = document.body.dataset.root;
  themeButton();
  menuButton();
  copyButtons();
  search(root);
});

function themeButton() {
  const button = document.getElementById("ui-theme");
  const show = (now) => {
    document.documentElement.dataset.theme = now;
    button.textContent = now === "dark" ? "Light" : "Dark";
  };
  show(theme());
  system.addEventListener("change", () => show(theme()));
  button.addEventListener("click", () => {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    store(next);
    show(next);
  });
}

function menuButton() {
  const button = document.getElementById("ui-menu");
  const nav = document.getElementById("ui-nav");
  button.addEventListener("click", () => {
    button.setAttribute("aria-expanded", String(nav.classList.toggle("open")));
  });
}

// A block of a terminal is copied without prompts and output.
function copyButtons() {
  for (const pre of document.querySelectorAll("main pre")) {
    const box = document.createElement("div");
    box.className = "copyable";
    pre.replaceWith(box);
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const lines = pre.innerText.split("\n");
      const typed = lines.filter((l) => l.startsWith("$ ")).map((l) => l.slice(2));
      try {
        await navigator.clipboard.writeText((typed.length ? typed : lines).join("\n"));
        button.textContent = "Copied";
      } catch { button.textContent = "Not allowed"; }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    box.append(pre, button);
  }
}

// The index is loaded when the search is used first.
function search(root) {
  const input = document.getElementById("ui-search");
  const list = document.getElementById("ui-results");
  let chosen = -1;
  let loading = null;
  const load = () => loading ??= new Promise((done) => {
    const script = document.createElement("script");
    script.src = root + "search.js";
    script.onload = done;
    document.head.append(script);
  });
  const close = () => { list.hidden = true; chosen = -1; input.setAttribute("aria-expanded", "false"); };
  const choose = (i) => {
    const items = [...list.querySelectorAll("[role=option]")];
    if (!items.length) return;
    chosen = (i + items.length) % items.length;
    items.forEach((item, n) => item.setAttribute("aria-selected", String(n === chosen)));
    items[chosen].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", items[chosen].id);
  };
  const update = async () => {
    await load();
    const words = input.value.toLowerCase().split(/\s+/).filter((w) => w.length > 1);
    if (!words.length) return close();
    list.replaceChildren(...found(words).map((hit, i) => item(root, hit, words, i)));
    if (!list.children.length) {
      const none = document.createElement("li");
      none.className = "none";
      none.textContent = "No page has all of these words.";
      list.append(none);
    }
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    choose(0);
  };
  input.addEventListener("focus", load);
  input.addEventListener("input", update);
  input.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown") { e.preventDefault(); choose(chosen + 1); }
    if (e.key === "ArrowUp") { e.preventDefault(); choose(chosen - 1); }
    if (e.key === "Escape") { close(); input.blur(); }
    if (e.key === "Enter") { list.querySelector("[aria-selected=true] a")?.click(); }
  });
  document.addEventListener("keydown", (e) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
    if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey) { e.preventDefault(); input.focus(); }
  });
  document.addEventListener("click", (e) => { if (!e.target.closest(".search")) close(); });
}

// found returns the parts of pages that have all words, the best first. A word in the title of a page counts most, then
// one in a heading, then how often the text has it, up to five times.
function found(words) {
  const hits = [];
  for (const page of window.kumikiSearch) {
    const title = page.t.toLowerCase();
    for (const [anchor, heading, text] of page.p) {
      const head = heading.toLowerCase();
      const body = text.toLowerCase();
      let score = 0;
      const all = words.every((w) => {
        const times = Math.min(5, body.split(w).length - 1);
        const s = (title.includes(w) ? 6 : 0) + (head.includes(w) ? 8 : 0) + times;
        score += s;
        return s > 0;
      });
      if (all) hits.push({ page, anchor, heading, text, score: score / (page.u.includes("bench/") || page.u.includes("design/") ? 2 : 1) });
    }
  }
  return hits.sort((a, b) => b.score - a.score).slice(0, 20);
}

function item(root, hit, words, i) {
  const li = document.createElement("li");
  li.setAttribute("role", "option");
  li.id = "ui-hit" + i;
  const a = document.createElement("a");
  a.href = root + hit.page.u + (hit.anchor ? "#" + hit.anchor : "");
  a.tabIndex = -1;
  a.textContent = hit.heading && hit.heading !== hit.page.t ? hit.page.t + " › " + hit.heading : hit.page.t;
  const small = document.createElement("small");
  const at = Math.max(0, hit.text.toLowerCase().indexOf(words[0]) - 50);
  const excerpt = hit.text.slice(at, at + 150);
  small.textContent = (at ? "…" + excerpt.replace(/^\S*\s/, "") : excerpt) + (hit.text.length > at + 150 ? "…" : "");
  a.append(small);
  li.append(a);
  return li;
}
