// Sorting by headings and leaving out rows, of every table with the attribute data-table.
const valueOf = (row, column) => row.cells[column]?.dataset.value ?? row.cells[column]?.textContent.trim() ?? "";

function compared(a, b) {
  const [x, y] = [Number(a), Number(b)];
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
}

function sortable(table, name) {
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows[0].cells];

  function sort(column, way) {
    const [there, blank] = [[], []];
    for (const row of rows) (column < 0 || valueOf(row, column) !== "" ? there : blank).push(row);
    if (column >= 0) there.sort((a, b) => way * compared(valueOf(a, column), valueOf(b, column)));
    table.tBodies[0].append(...there, ...blank); // what is not known comes last, whichever way
    table.classList.toggle("sorted", column >= 0);
    heads.forEach((head, index) => {
      const words = index !== column ? "none" : way > 0 ? "ascending" : "descending";
      head.setAttribute("aria-sort", words);
    });
  }

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const way = { none: 1, ascending: -1, descending: 0 }[head.getAttribute("aria-sort")];
      sort(way ? column : -1, way);
      remember(`sort.${name}`, way ? `${way > 0 ? "" : "-"}${column + 1}` : "");
    });
  });
  const asked = Number(chosen.get(`sort.${name}`));
  const fits = Number.isInteger(asked) && asked !== 0 && Math.abs(asked) <= heads.length;
  sort(fits ? Math.abs(asked) - 1 : -1, Math.sign(asked));
}

function filterable(table, tools, name) {
  const rows = [...table.tBodies[0].rows];
  const [box, chips, count] = [tools.querySelector("input"), [...tools.querySelectorAll(".chip")], tools.querySelector("output")];
  const key = (chip) => `${chip.dataset.column}:${chip.dataset.value}`;

  function apply() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const off = chips.filter((chip) => chip.getAttribute("aria-pressed") === "false");
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const left = off.some((chip) => valueOf(row, chip.dataset.column) === chip.dataset.value);
      row.hidden = left || !words.every((word) => text.includes(word));
    }
    const shown = rows.filter((row) => !row.hidden).length;
    count.textContent = shown === rows.length ? `${shown} rows` : `${shown} of ${rows.length} rows`;
    remember(`find.${name}`, box.value);
    rememberList(`hide.${name}`, off.map(key));
  }

  const off = new Set(list(`hide.${name}`));
  box.value = chosen.get(`find.${name}`) ?? "";
  for (const chip of chips) {
    chip.setAttribute("aria-pressed", String(!off.has(key(chip))));
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") === "false"));
      apply();
    });
  }
  box.addEventListener("input", apply);
  tools.hidden = false;
  if (off.size || box.value) apply();
  else count.textContent = `${rows.length} rows`;
}

for (const table of document.querySelectorAll("table[data-table]")) {
  const name = table.dataset.table;
  sortable(table, name);
  const tools = document.querySelector(`[data-tools="${name}"]`);
  if (tools) filterable(table, tools, name);
}

for (const button of document.querySelectorAll("[data-columns]")) {
  const box = document.getElementById(button.dataset.columns);
  button.hidden = false;
  const show = (all) => {
    box.classList.toggle("every", all);
    button.setAttribute("aria-expanded", String(all));
    button.textContent = all ? "Fewer columns" : "More columns";
  };
  show(chosen.get("columns") === "all");
  button.addEventListener("click", () => {
    const all = button.getAttribute("aria-expanded") === "false";
    show(all);
    remember("columns", all ? "all" : "");
  });
}
