// Draws the figures in the colours of the screen and the width there is.
const { light, dark, figures, datasets } = JSON.parse(document.getElementById("charts").textContent);
const darkness = window.matchMedia("(prefers-color-scheme: dark)");
const NARROW = 520;
const hidden = { series: series.hidden, workers: new Set(), phase: new Set() };

const rows = (spec) => (spec.datasets ?? []).flatMap((name) => datasets[name]);
const visible = (row) => !series.hidden.has(row.series) && !hidden.phase.has(row.phase);
const longest = (spec) => Math.max(2, ...rows(spec).map((row) => String(row.phase ?? row.series ?? (row.panel ? "" : "xxxx")).length));

// The field whose values the legend lists.
function coloured(spec) {
  const field = spec.encoding?.color?.field;
  return field ?? [spec.spec, ...(spec.layer ?? [])].filter(Boolean).map(coloured).find(Boolean);
}

function whole(spec) {
  const made = structuredClone(spec);
  const byWorkers = coloured(spec) === "workers";
  const shown = (row) => visible(row) && !(byWorkers && hidden.workers.has(row.workers));
  made.datasets = Object.fromEntries((spec.datasets ?? []).map((name) => [name, datasets[name].filter(shown)]));
  return made;
}

function fitted(spec, width, first) {
  const made = whole(spec);
  if (made.facet) {
    // Panels stand side by side where each has room to be read, evenly over the lines.
    const panels = new Set(rows(spec).map((row) => row[made.facet.field]).filter((value) => value !== undefined)).size;
    const most = Math.max(1, Math.min(3, Math.floor(width / 300)));
    made.columns = Math.ceil(panels / Math.ceil(panels / most));
    made.spec.width = Math.floor((width - 64 - 20 * (made.columns - 1)) / made.columns);
    return made;
  }
  made.width = "container";
  made.autosize = { type: "fit-x", contains: "padding" };
  if (first) made.height = Math.min(made.height, 220);
  const names = made.encoding?.y?.axis;
  if (width < NARROW && names?.labelLimit) names.labelLimit = width / 3;
  if (width < NARROW && made.layer) {
    made.height = Math.min(made.height, 280);
  }
  return made;
}

function themed(spec, width) {
  const config = structuredClone(darkness.matches ? dark : light);
  // A legend begins where the drawing does, after the names of its rows if it has any.
  const names = Math.max(0, ...rows(spec).map((row) => String(row.bar ?? "").length * 6.6));
  const left = Math.max(110, Math.min(width < NARROW ? width / 3 : 260, names) + 40);
  config.legend.columns = Math.max(1, Math.floor((width - left) / (longest(spec) * 6.6 + 30)));
  if (width < NARROW) {
    Object.assign(config.axis, { labelFontSize: 12, titleFontSize: 12, labelLimit: 120 });
    config.legend.labelFontSize = 12;
  }
  return config;
}

const views = new Map();

async function draw(box) {
  const width = box.clientWidth;
  const name = box.dataset.chart;
  if (!width) return;
  const focused = focusedIn(box);
  try {
    const view = await window.vegaEmbed(box, fitted(figures[name].spec, width, box.closest(".first") !== null), {
      mode: "vega-lite",
      renderer: "svg",
      actions: false,
      config: themed(figures[name].spec, width),
      tooltip: { theme: darkness.matches ? "dark" : "light" },
    });
    views.get(box)?.finalize();
    views.set(box, view);
    clickable(box, coloured(figures[name].spec), focused);
    box.dataset.drawn = width;
  } catch (error) {
    console.error(error);
    box.closest("figure").classList.add("failed");
  }
}

// An entry of a legend hides what it names, or shows it again: by a click, or by Enter and the space bar on its label.
function clickable(box, field, focused) {
  if (!hidden[field]) return;
  const symbols = [...box.querySelectorAll(".role-legend-symbol path")];
  box.querySelectorAll(".role-legend-label text").forEach((label, index) => {
    const value = field === "workers" ? Number(label.textContent) : label.textContent;
    const toggle = () => {
      if (field === "series") return series.toggle(value);
      if (!hidden[field].delete(value)) hidden[field].add(value);
      boxes.forEach(draw);
    };
    for (const entry of [label, symbols[index]].filter(Boolean)) {
      entry.classList.toggle("hidden-series", hidden[field].has(value));
      entry.addEventListener("click", toggle);
    }
    const traits = { role: "button", tabindex: 0, "aria-label": label.textContent, "aria-pressed": !hidden[field].has(value) };
    for (const [name, trait] of Object.entries(traits)) label.setAttribute(name, trait);
    label.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault(); // the space bar would scroll the page
      toggle();
    });
    if (label.textContent === focused) label.focus({ preventScroll: true });
  });
}

// The label of a legend that has the focus, which drawing anew would lose.
function focusedIn(box) {
  return box.contains(document.activeElement) ? document.activeElement.textContent : undefined;
}

// The picture for paper and for files: light and wide, whatever the screen is.
async function still(name) {
  const options = { mode: "vega-lite", renderer: "svg", actions: false, config: { ...light, background: "#FFFFFF" } };
  const result = await window.vegaEmbed(document.createElement("div"), whole(figures[name].spec), options);
  const svg = await result.view.toSVG();
  result.finalize();
  return "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
}

async function choose(place, name) {
  const { title, caption } = figures[name];
  const [box, image] = [place.querySelector("[data-chart]"), place.querySelector(".still")];
  box.dataset.chart = name;
  box.setAttribute("aria-label", title);
  image.alt = title;
  place.querySelector("h2, h3, h4").textContent = title;
  place.querySelector("figcaption").textContent = caption;
  await draw(box);
  image.src = await still(name);
}

// PNG of twice the size, since SVG is what the picture is already.
async function save(place, kind) {
  const [name, image] = [place.querySelector("[data-chart]").dataset.chart, place.querySelector(".still")];
  const link = document.createElement("a");
  link.download = `${name}.${kind}`;
  link.href = image.src;
  if (kind === "png") {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * image.naturalWidth, 2 * image.naturalHeight];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    link.href = canvas.toDataURL("image/png");
  }
  link.click();
}

const boxes = [...document.querySelectorAll("[data-chart]")];
for (const box of boxes) {
  const place = box.closest("figure");
  place.querySelector("select")?.addEventListener("change", (event) => choose(place, event.target.value));
  for (const kind of ["PNG", "SVG"]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = kind;
    button.addEventListener("click", () => save(place, kind.toLowerCase()));
    place.querySelector(".head").append(button);
  }
}
await Promise.all(boxes.map(draw));
document.documentElement.dataset.charts = "drawn";
document.dispatchEvent(new Event("drawn"));
darkness.addEventListener("change", () => boxes.forEach(draw));
document.addEventListener("serieschange", () => boxes.forEach(draw));
// A folded part has no width until it is opened.
new ResizeObserver(() => {
  boxes.filter((box) => Math.abs(box.clientWidth - (box.dataset.drawn ?? 0)) > 4).forEach(draw);
}).observe(document.body);
