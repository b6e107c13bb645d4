"use strict";
// The number of cases by the place of each earlier release: of "1-3:8 5:2" it is 8 for 1 to 3.
const ranges = (text) => {
  const cases = new Map();
  for (const [, first, last, count] of text.matchAll(/(\d+)(?:-(\d+))?:(\d+)/g)) {
    for (let place = Number(first); place <= Number(last || first); place += 1) cases.set(String(place), count);
  }
  return cases;
};

// Filters of a list live in the address, so that a filtered list can be linked to.
const filter = document.querySelector("form.filter");
if (filter) {
  const rows = [...document.querySelectorAll("[data-row]")].map((row) => ({
    row,
    words: row.textContent.toLowerCase(),
    stands: (row.dataset.v || "").split(";").filter(Boolean).map((part) => part.split("=")),
    // Which of the hook kinds to choose from it is about, as the bits of a number.
    kinds: BigInt(`0x${row.dataset.kinds || 0}`),
    families: (row.dataset.family || "").split(" "),
    from: ranges(row.dataset.from || ""),
    cases: row.dataset.from ? row.querySelector("small > span") : null,
  }));
  for (const item of rows) item.said = item.cases ? item.cases.textContent : "";
  const controls = [...filter.elements].filter((control) => control.name);
  const value = (name) => (filter.elements[name] ? filter.elements[name].value : "");
  const release = () => Math.max(0, filter.elements.release ? filter.elements.release.selectedIndex : 0);
  const order = filter.elements.sign ? [...filter.elements.sign.options].map((option) => option.value).join("") : "";

  // The place of the earlier release that is chosen, on a page that has the changes from several; "" for all.
  const earlier = () => {
    const select = filter.elements.from;
    return select && select.value ? select.selectedOptions[0].dataset.place : "";
  };

  const shows = (item) => {
    const words = value("q").toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.every((word) => item.words.includes(word))) return false;
    if (value("cost") && item.row.dataset.cost !== value("cost")) return false;
    if (item.cases) {
      const count = Number(item.from.get(earlier()));
      if (earlier() && !item.from.has(earlier())) return false;
      item.cases.textContent = earlier() ? `${count.toLocaleString("en")} case${count === 1 ? "" : "s"}` : item.said;
    }
    if (value("family") && !item.families.includes(value("family"))) return false;
    const kind = value("kind") ? filter.elements.kind.selectedIndex - 1 : -1;
    if (!item.stands.length) return kind < 0 || (item.kinds >> BigInt(kind)) % 2n === 1n;
    const letters = item.stands
      .filter(([kind]) => !value("kind") || kind === value("kind"))
      .map(([, all]) => all[release()])
      .sort((a, b) => order.indexOf(a) - order.indexOf(b));
    if (!letters.length || (value("sign") && !letters.includes(value("sign")))) return false;
    const option = [...filter.elements.sign.options].find((each) => each.value === (value("sign") || letters[0]));
    const cell = item.row.lastElementChild;
    if (option && (value("kind") || value("sign") || value("release"))) {
      cell.className = `s ${option.dataset.style}`;
      cell.textContent = `${option.dataset.symbol} ${option.textContent}`;
    }
    return true;
  };

  const apply = (note) => {
    let count = 0;
    for (const item of rows) {
      const visible = shows(item);
      item.row.hidden = !visible;
      count += visible ? 1 : 0;
    }
    filter.querySelector("output").textContent = `${count} of ${rows.length} shown`;
    for (const part of document.querySelectorAll(".counted")) {
      const shown = part.querySelectorAll("[data-row]:not([hidden])").length;
      part.hidden = !shown;
      part.querySelector("small").textContent = shown;
    }
    for (const pair of document.querySelectorAll("[data-pair]")) {
      pair.hidden = earlier() !== "" && pair.dataset.pair !== earlier();
    }
    if (note) {
      const chosen = new URLSearchParams();
      for (const control of controls) if (control.value) chosen.set(control.name, control.value);
      const query = chosen.toString();
      history.replaceState(null, "", (query ? `?${query}` : location.pathname) + location.hash);
    }
  };

  const asked = new URLSearchParams(location.search);
  for (const control of controls) if (asked.has(control.name)) control.value = asked.get(control.name);
  for (const control of controls) if (control.selectedIndex === -1) control.selectedIndex = 0;
  filter.hidden = false;
  filter.addEventListener("input", () => apply(true));
  filter.addEventListener("submit", (event) => event.preventDefault());
  apply(false);
}

const chooser = document.querySelector("form.chooser");
if (chooser) {
  const button = chooser.querySelector("a");
  const choose = () => {
    const [before, after] = ["before", "after"]
      .map((name) => chooser.elements[name].selectedOptions[0])
      .sort((a, b) => b.dataset.place - a.dataset.place);
    const fit = before !== after && before.value !== after.value && before.dataset.device === after.dataset.device;
    button.href = fit ? `compare/${after.value}.html?from=${encodeURIComponent(before.value)}` : "#all";
    button.textContent = fit ? "Compare" : "Choose two releases on one device";
  };
  chooser.hidden = false;
  chooser.addEventListener("input", choose);
  choose();
}

const leading = document.querySelector("form.leading");
if (leading) {
  const select = leading.querySelector("select");
  const here = select.selectedIndex;
  leading.hidden = false;
  document.querySelector(".choice").hidden = true;
  select.addEventListener("change", () => location.assign(select.value));
  window.addEventListener("pageshow", () => (select.selectedIndex = here)); // on the way back
}

for (const block of document.querySelectorAll("pre.command")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.textContent.trim());
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block);
      button.textContent = "Selected: press Ctrl+C";
    }
  });
  block.after(button);
}
