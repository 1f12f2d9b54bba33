const { light, dark, specs } = JSON.parse(document.getElementById("charts").textContent);
const darkness = window.matchMedia("(prefers-color-scheme: dark)");
const views = new Map();

function fitted(spec, width) {
  // A legend takes as many columns as fit; panels stand side by side where each has room to be read.
  const made = structuredClone(spec);
  if (made.facet) {
    const panels = new Set(Object.values(made.datasets ?? {}).concat([made.data?.values ?? []]).flat().map((r) => r.panel)).size;
    made.columns = Math.max(1, Math.min(panels, 3, Math.floor(width / 300)));
    made.spec.width = Math.floor((width - 70) / made.columns) - 20;
  } else {
    made.width = "container";
    made.autosize = { type: "fit-x", contains: "padding" };
    if (typeof made.height === "number" && width < 520) made.height = 280;
  }
  return made;
}

function themed(width) {
  const config = structuredClone(darkness.matches ? dark : light);
  config.legend.columns = Math.max(2, Math.floor(width / 100));
  if (width < 520) {
    Object.assign(config.axis, { labelFontSize: 12, titleFontSize: 12, labelLimit: 120 });
    config.legend.labelFontSize = 12;
  }
  return config;
}

async function draw(box) {
  const width = box.clientWidth;
  if (!width) return;
  try {
    const result = await window.vegaEmbed(box, fitted(specs[box.dataset.chart], width), {
      mode: "vega-lite",
      renderer: "svg",
      actions: false,
      config: themed(width),
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
