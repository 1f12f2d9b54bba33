// Sorts tables by their headings, and finds rows by words; what is not known comes last, whichever way.
const valueOf = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();

function compared(a, b) {
  const [x, y] = [Number(a), Number(b)];
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
}

function sortable(table) {
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
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

function searchable(table) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 6) return;
  const tools = document.createElement("p");
  tools.className = "tools";
  tools.innerHTML = '<label>Find <input type="search" autocomplete="off" spellcheck="false"></label> <output></output>';
  table.parentElement.before(tools);
  tools.querySelector("input").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    tools.querySelector("output").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  });
}

for (const table of document.querySelectorAll("table[data-sortable]")) {
  sortable(table);
  searchable(table);
}

// The advised row is in view where the table scrolls in its box.
for (const row of document.querySelectorAll(".long tr.chosen")) {
  const box = row.closest(".box");
  const hidden = row.offsetTop + row.offsetHeight - box.clientHeight;
  if (hidden > 0) box.scrollTop = hidden + box.clientHeight / 2;
}
