const { light, dark, specs } = JSON.parse(document.getElementById("charts").textContent);
const darkness = window.matchMedia("(prefers-color-scheme: dark)");
const views = new Map();

const rows = (spec) => Object.values(spec.datasets ?? {}).flat().concat(spec.data?.values ?? []);
const longest = (spec) => Math.max(2, ...rows(spec).map((row) => String(row.phase ?? row.series ?? (row.panel ? "" : "xxxx")).length));

function fitted(spec, width) {
  const made = structuredClone(spec);
  if (made.facet) {
    // Panels stand side by side where each has room to be read, evenly over the lines.
    const panels = new Set(rows(made).map((row) => row.panel)).size;
    const most = Math.max(1, Math.min(3, Math.floor(width / 300)));
    made.columns = Math.ceil(panels / Math.ceil(panels / most));
    made.spec.width = Math.floor((width - 64 - 20 * (made.columns - 1)) / made.columns);
  } else {
    made.width = "container";
    made.autosize = { type: "fit-x", contains: "padding" };
    if (made.layer && width < 520) made.height = 280;
  }
  return made;
}

function themed(spec, width) {
  const config = structuredClone(darkness.matches ? dark : light);
  config.legend.columns = Math.max(1, Math.floor((width - 110) / (longest(spec) * 6.6 + 30)));
  if (width < 520) {
    Object.assign(config.axis, { labelFontSize: 12, titleFontSize: 12, labelLimit: 120 });
    config.legend.labelFontSize = 12;
  }
  return config;
}

async function draw(box) {
  const width = box.clientWidth;
  const spec = specs[box.dataset.chart];
  if (!width) return;
  try {
    const result = await window.vegaEmbed(box, fitted(spec, width), {
      mode: "vega-lite",
      renderer: "svg",
      actions: false,
      config: themed(spec, width),
      tooltip: { theme: darkness.matches ? "dark" : "light" },
    });
    views.get(box)?.finalize();
    views.set(box, result);
    box.dataset.drawn = width;
  } catch (error) {
    console.error(error);
    box.closest("figure").classList.add("failed");
  }
}

const boxes = [...document.querySelectorAll("[data-chart]")];
await Promise.all(boxes.map(draw));
document.documentElement.dataset.charts = "drawn";
darkness.addEventListener("change", () => boxes.forEach(draw));
let waiting;
new ResizeObserver(() => {
  clearTimeout(waiting);
  waiting = setTimeout(() => boxes.filter((box) => Math.abs(box.clientWidth - box.dataset.drawn) > 4).forEach(draw), 150);
}).observe(document.body);
