// What a reader has chosen stands in the address behind "#", so that a link to the page shows the same.
const chosen = new Map();

function read(hash) {
  chosen.clear();
  if (!hash.includes("=")) return; // the name of a place in the page, or nothing
  for (const [key, value] of new URLSearchParams(hash.slice(1))) if (value.length < 4000) chosen.set(key, value);
}

function remember(key, value) {
  if (value === "" || value === null) chosen.delete(key);
  else chosen.set(key, value);
  history.replaceState(null, "", "#" + new URLSearchParams([...chosen]));
}

// A list of texts or numbers; empty for whatever else somebody has made of the address.
function list(key) {
  try {
    const found = JSON.parse(chosen.get(key) ?? "[]");
    return Array.isArray(found) ? found.filter((each) => ["string", "number"].includes(typeof each)) : [];
  } catch {
    return [];
  }
}

const rememberList = (key, values) => remember(key, values.length ? JSON.stringify(values) : "");

read(location.hash);

const folds = [...document.querySelectorAll("details[id]")];
const open = new Set(list("open"));
for (const fold of folds) {
  if (open.has(fold.id)) fold.open = true;
  fold.addEventListener("toggle", () => rememberList("open", folds.filter((each) => each.open).map((each) => each.id)));
}

// A place in the page may be folded away, and going there must not forget what was chosen.
function go(id) {
  const place = document.getElementById(id);
  if (!place) return false;
  for (let fold = place.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (!place.hasAttribute("tabindex")) place.setAttribute("tabindex", "-1");
  place.scrollIntoView();
  place.focus({ preventScroll: true });
  return true;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href^="#"]');
  if (link && go(decodeURIComponent(link.hash.slice(1)))) {
    event.preventDefault();
    remember("at", link.hash.slice(1));
  }
});

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Copied";
    } catch {
      window.prompt("Link to this view", location.href);
    }
  });
}
