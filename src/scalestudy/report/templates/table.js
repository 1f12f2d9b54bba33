// Sorts tables by their headings, and shows the rows that have the sought words and a series that is not hidden.
// What is not known comes last, whichever way.
const valueOf = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();

function compared(a, b) {
  const [x, y] = [Number(a), Number(b)];
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
}

function made(tag, attributes, ...children) {
  const element = Object.assign(document.createElement(tag), attributes);
  element.append(...children);
  return element;
}

function sortable(table) {
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = made("button", { type: "button" }, ...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const words = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")];
      for (const each of heads) each.setAttribute("aria-sort", each === head ? words : "none");
      const way = words === "ascending" ? 1 : -1;
      const known = rows.filter((row) => words === "none" || valueOf(row, column) !== "");
      if (words !== "none") known.sort((a, b) => way * compared(valueOf(a, column), valueOf(b, column)));
      table.tBodies[0].append(...known, ...rows.filter((row) => !known.includes(row)));
    });
  });
}

function filterable(table, tools) {
  const rows = [...table.tBodies[0].rows];
  const output = document.createElement("output");
  let words = [];
  const filter = () => {
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = series.hidden.has(row.dataset.series) || !words.every((word) => text.includes(word));
    }
    const shown = rows.filter((row) => !row.hidden).length;
    output.textContent = shown < rows.length ? `${shown} of ${rows.length} rows` : "";
  };

  const buttons = [...new Set(rows.map((row) => row.dataset.series).filter(Boolean))].map((name) => {
    const button = made("button", { type: "button" }, name);
    button.dataset.series = name;
    button.addEventListener("click", () => series.toggle(name));
    return button;
  });
  const pressed = () => buttons.forEach((button) => button.setAttribute("aria-pressed", !series.hidden.has(button.dataset.series)));
  document.addEventListener("serieschange", () => {
    pressed();
    filter();
  });
  pressed();

  const search = made("input", { type: "search", autocomplete: "off", spellcheck: false });
  search.addEventListener("input", () => {
    words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    filter();
  });
  const group = made("span", { className: "series", role: "group", ariaLabel: "Shown" }, ...buttons);
  tools.prepend(...(rows.length < 6 ? [] : [made("label", {}, "Find ", search)]), ...(buttons.length > 1 ? [group] : []), output);

  // The row of an address is in view, whatever was hidden.
  const followed = () => {
    const row = rows.find((each) => each.id && `#${each.id}` === decodeURIComponent(location.hash));
    if (!row) return;
    if (row.hidden) {
      search.value = "";
      words = [];
      series.show();
    }
    row.scrollIntoView({ block: "center" });
  };
  addEventListener("hashchange", followed);
  document.addEventListener("drawn", followed); // figures above it have moved it
  followed();
}

function detailed(table, tools) {
  if (!table.querySelector(".detail")) return;
  const box = made("input", { type: "checkbox", autocomplete: "off" });
  box.addEventListener("change", () => table.classList.toggle("detailed", box.checked));
  tools.prepend(made("label", { className: "columns" }, box, " All columns"));
}

for (const table of document.querySelectorAll("table[data-sortable]")) {
  const tools = table.parentElement.previousElementSibling;
  sortable(table);
  detailed(table, tools);
  filterable(table, tools);
}

// The advised row is in view where the table scrolls in its box, unless the address names another.
for (const row of document.querySelectorAll(".long tr.chosen")) {
  const box = row.closest(".box");
  const below = row.offsetTop + row.offsetHeight - box.clientHeight;
  if (below > 0 && !document.querySelector(".long tr:target")) box.scrollTop = below + box.clientHeight / 2;
}
