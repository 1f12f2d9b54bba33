// Draws the figures, in the colours of the screen and the width there is; keeps what is picked and chosen.
const { light, dark, figures, datasets } = JSON.parse(document.getElementById("charts").textContent);
const darkness = window.matchMedia("(prefers-color-scheme: dark)");
const views = new Map();
const NARROW = 520;

const rows = (spec) => (spec.datasets ?? []).flatMap((name) => datasets[name]);
const longest = (spec) => Math.max(2, ...rows(spec).map((row) => String(row.phase ?? row.series ?? (row.panel ? "" : "xxxx")).length));
const namesOf = (spec, field) => new Set(rows(spec).map((row) => row[field]).filter((each) => each !== undefined));

function fitted(spec, width) {
  const made = structuredClone(spec);
  made.datasets = Object.fromEntries((spec.datasets ?? []).map((name) => [name, datasets[name]]));
  if (made.facet) {
    // Panels stand side by side where each has room to be read, evenly over the lines.
    const panels = namesOf(spec, made.facet.field).size;
    const tiles = made.spec.encoding === undefined && made.spec.layer?.[0].mark?.type === "rect";
    const least = tiles ? made.spec.width + 70 : 300;
    const most = Math.max(1, Math.min(tiles ? 6 : 3, Math.floor(width / least)));
    made.columns = Math.ceil(panels / Math.ceil(panels / most));
    const room = Math.floor((width - 64 - 20 * (made.columns - 1)) / made.columns);
    made.spec.width = tiles ? Math.min(made.spec.width, room) : room;
    return made;
  }
  made.width = "container";
  made.autosize = { type: "fit-x", contains: "padding" };
  const names = made.encoding?.y?.axis;
  if (width < NARROW && names?.labelLimit) names.labelLimit = width / 3;
  if (width < NARROW && made.layer) {
    // Names beside the lines would take the room of the lines; the legend has them.
    made.layer = made.layer.filter((layer) => !layer.name?.startsWith("names"));
    made.height = Math.min(made.height, 280);
  }
  return made;
}

function themed(spec, width, theme) {
  const config = structuredClone(theme);
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

// The series that were picked before, as far as this figure has them.
function withPicked(spec, original, place) {
  const parameter = spec.params?.find((each) => each.name === "picked");
  if (!parameter) return null;
  const field = parameter.select.fields[0];
  const there = namesOf(original, field);
  const picked = list(`pick.${place}`).filter((each) => there.has(each));
  if (picked.length) parameter.value = picked.map((each) => ({ [field]: each }));
  return field;
}

async function draw(box) {
  const width = box.clientWidth;
  const spec = figures[box.dataset.chart].spec;
  if (!width) return;
  const place = box.closest("figure");
  try {
    const made = fitted(spec, width);
    const field = withPicked(made, spec, place.id);
    const result = await window.vegaEmbed(box, made, {
      mode: "vega-lite",
      renderer: "svg",
      actions: false,
      config: themed(spec, width, darkness.matches ? dark : light),
      tooltip: { theme: darkness.matches ? "dark" : "light" },
    });
    views.get(box)?.finalize();
    views.set(box, result);
    box.dataset.drawn = width;
    if (field) result.view.addSignalListener("picked", (_, value) => rememberList(`pick.${place.id}`, value?.[field] ?? []));
  } catch (error) {
    console.error(error);
    place.classList.add("failed");
  }
}

// The picture for paper and for files: light and wide, whatever the screen is.
async function still(name) {
  const { spec, title } = figures[name];
  const made = structuredClone(spec);
  made.datasets = Object.fromEntries((spec.datasets ?? []).map((each) => [each, datasets[each]]));
  const result = await window.vegaEmbed(document.createElement("div"), { ...made, title }, {
    mode: "vega-lite",
    renderer: "svg",
    actions: false,
    config: { ...light, background: "#FFFFFF" },
  });
  const svg = await result.view.toSVG();
  result.finalize();
  return svg;
}

const address = (svg) => "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);

async function choose(place, name) {
  const { title, caption } = figures[name];
  const [box, image] = [place.querySelector("[data-chart]"), place.querySelector(".still")];
  box.dataset.chart = name;
  box.setAttribute("aria-label", title);
  image.alt = title;
  place.querySelector("h3").textContent = title;
  place.querySelector("figcaption").textContent = caption;
  await draw(box);
  image.src = address(await still(name));
}

async function save(place, kind) {
  const [name, image] = [place.querySelector("[data-chart]").dataset.chart, place.querySelector(".still")];
  const link = document.createElement("a");
  link.download = `${name}.${kind}`;
  if (kind === "svg") link.href = image.src;
  else {
    const picture = new Image();
    picture.src = image.src;
    await picture.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * picture.naturalWidth, 2 * picture.naturalHeight];
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    link.href = canvas.toDataURL("image/png");
  }
  link.click();
  return link.href;
}

const places = [...document.querySelectorAll("figure[data-place]")];
const boxes = places.map((place) => place.querySelector("[data-chart]"));
for (const place of places) {
  const select = place.querySelector("select");
  for (const button of place.querySelectorAll("[data-save]")) {
    button.addEventListener("click", () => save(place, button.dataset.save));
  }
  select?.addEventListener("change", () => {
    remember(`show.${place.id}`, select.selectedIndex ? select.value : "");
    choose(place, select.value);
  });
}
await Promise.all(
  places.map((place, index) => {
    const [select, asked] = [place.querySelector("select"), chosen.get(`show.${place.id}`)];
    if (!select || ![...select.options].some((option) => option.value === asked)) return draw(boxes[index]);
    select.value = asked;
    return choose(place, asked);
  }),
);
document.documentElement.dataset.charts = "drawn";
darkness.addEventListener("change", () => boxes.forEach(draw));
let waiting;
new ResizeObserver(() => {
  clearTimeout(waiting);
  waiting = setTimeout(() => boxes.filter((box) => Math.abs(box.clientWidth - box.dataset.drawn) > 4).forEach(draw), 150);
}).observe(document.body);
