// What ties the page together: one recipe is selected, and everything that shows one follows.

const element = (id) => document.getElementById(id);
const kinds = { front: "On the front", zoo: "Zoo allocator", cloud: "Off the front" };
const NARROW = matchMedia("(max-width: 600px)");

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function explain(error) {
  element("problem").textContent = `The page stands still (${error.message}). It moves in a browser of 2023 or later.`;
  element("problem").hidden = false;
}

function number(value, unit) {
  const text = Number.isInteger(value) ? value.toLocaleString("en") : value.toLocaleString("en", { maximumSignificantDigits: 4 });
  return unit === "ratio" || unit === "count" ? text : `${text} ${unit}`;
}

// What the reader chose stands in the address: a recipe, then keys with their values.
const address = {
  read() {
    const [selected, ...chosen] = location.hash.slice(1).split("&");
    return { selected: decodeURIComponent(selected), chosen: new URLSearchParams(chosen.join("&")) };
  },

  // Put changes in; a value of null takes its key out.
  put({ selected, ...changes }) {
    const now = this.read();
    for (const [key, value] of Object.entries(changes)) value === null ? now.chosen.delete(key) : now.chosen.set(key, value);
    const parts = [encodeURIComponent(selected ?? now.selected), now.chosen.toString()];
    history.replaceState(null, "", `#${parts.join(parts[1] && "&")}`);
  },
};

function find(recipes, wanted) {
  if (!wanted) return undefined;
  const exact = recipes.find((recipe) => recipe.id === wanted || recipe.name === wanted);
  if (exact || wanted.length < 4) return exact;
  const near = recipes.filter((recipe) => recipe.id.startsWith(wanted));
  return near.length === 1 ? near[0] : undefined;
}

function rows(data) {
  return data.recipes.id.map((id, at) => {
    const recipe = Object.fromEntries(Object.entries(data.recipes).map(([key, column]) => [key, column[at]]));
    const measured = Object.entries(data.values).map(([key, column]) => [key, column[at]]).filter(([, value]) => value !== null);
    return { ...recipe, label: recipe.name || id, metrics: Object.fromEntries(measured) };
  });
}

// Plots that were drawn for a narrow page, in place of those that would shrink to it.
function fit(stills) {
  const wide = new Map(Object.keys(stills).map((name) => [name, [...element(name).childNodes]]));
  const swap = () => {
    for (const [name, text] of Object.entries(stills)) {
      const place = element(name);
      if (!NARROW.matches) {
        place.replaceChildren(...wide.get(name));
        continue;
      }
      place.innerHTML = text;
      const pictures = wide.get(name).flatMap((node) => [...(node.querySelectorAll?.("image") ?? [])]);
      for (const [at, image] of place.querySelectorAll("image").entries()) image.setAttribute("href", pictures[at].href.baseVal);
    }
  };
  NARROW.addEventListener("change", swap);
  swap();
}

class Study {
  constructor(data) {
    Object.assign(this, { data, recipes: rows(data), limits: { memory: null, worst: null }, pick: data.selected });
    const place = element("trade-off");
    place.setAttribute("role", "group");
    place.setAttribute("aria-label", "The trade-off; arrow keys go along the front");
    place.tabIndex = 0;
    this.plot = new TradeOff(place, data, this.recipes, (id) => this.choose(id));
    this.offerAxes();
    this.offerBudget();
    element("whole").addEventListener("change", () => this.turn());
    addEventListener("hashchange", () => this.goTo());
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.('a[href^="#"]');
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault(); // it would leave nothing else in the address
      const wanted = decodeURIComponent(link.hash.slice(1));
      const recipe = find(this.recipes, wanted);
      recipe ? this.choose(recipe.id) : element(wanted)?.scrollIntoView();
    });
    this.select(data.selected);
    this.goTo();
  }

  // Show what the address says.
  goTo() {
    const { selected, chosen } = address.read();
    for (const [axis, usual] of [["x", this.data.axes[0]], ["y", this.data.axes[1]]]) {
      const wanted = chosen.get(axis);
      element(`axis-${axis}`).value = this.data.offered.includes(wanted) ? wanted : usual;
    }
    element("whole").checked = chosen.has("whole");
    this.plot.show(this.axes());
    this.budget?.(chosen);
    this.select(selected);
  }

  axes() {
    return { x: element("axis-x").value, y: element("axis-y").value, whole: element("whole").checked };
  }

  // Turn the plot as its controls say.
  turn() {
    const { x, y, whole } = this.axes();
    const [usualX, usualY] = this.data.axes;
    address.put({ x: x === usualX ? null : x, y: y === usualY ? null : y, whole: whole ? "1" : null });
    this.plot.show({ x, y, whole });
  }

  // Select a recipe, and let the address say so.
  choose(id) {
    address.put({ selected: id });
    this.select(id);
  }

  select(wanted) {
    const recipe = find(this.recipes, wanted);
    if (!recipe) return;
    this.selected = recipe;
    document.documentElement.dataset.selected = recipe.id;
    this.answer(recipe);
    this.describe(recipe);
    this.plot.show({ selected: recipe.id });
    for (const row of document.querySelectorAll("tr[data-id]")) row.classList.toggle("selected", row.dataset.id === recipe.id);
    this.showMaps(recipe);
    this.showBar(recipe);
  }

  answer(recipe) {
    const told = this.data.says[recipe.id];
    const alone = `${recipe.label} was tried on what was explored alone: it takes ${number(recipe.metrics.footprint_bytes, "bytes")} there.`;
    const chosen = recipe.id === this.pick ? told?.[0] : told?.[0].replace(/^Ship (.+?): reserve /, "You chose $1: reserve ");
    element("answer-text").textContent = told ? this.within(recipe, chosen) : alone;
    const points = (told ? told.slice(1) : []).map((text) => Object.assign(document.createElement("li"), { textContent: text }));
    element("beside").replaceChildren(...points);
    this.compare(recipe);
  }

  // The table of what else one could take, with this recipe in its first column.
  compare(recipe) {
    const told = this.data.tables[recipe.id];
    element("others").hidden = !told;
    if (!told) return;
    const made = (name, text, ...inside) => {
      const one = Object.assign(document.createElement(name), { textContent: text });
      one.append(...inside.filter(Boolean));
      return one;
    };
    const small = (text) => text && made("small", ` ${text}`);
    const heads = told.heaps.map(([label, role, title], at) => {
      const is = at === 0 && recipe.id !== this.pick ? "chosen" : role; // a click does not make it what to ship
      const head = made("th", `${label} `, is && made("b", is), made("span", title));
      head.scope = "col";
      return head;
    });
    const rows = told.rows.map(([words, unit, meaning, cells]) => {
      const head = made("th", "", term(words, meaning), small(unit));
      head.scope = "row";
      const found = cells.map(([text, against, better]) => {
        const cell = made("td", text, small(against));
        if (better !== null) cell.className = better ? "better" : "worse";
        return cell;
      });
      return made("tr", "", head, ...found);
    });
    element("others").tHead.replaceChildren(made("tr", "", made("td", ""), ...heads));
    element("others").tBodies[0].replaceChildren(...rows);
  }

  bounds() {
    const { memory, worst } = this.limits;
    const told = [memory !== null && `within ${number(memory, "bytes")}`, worst !== null && `with at most ${number(worst, "count")} loads and stores a call`];
    return told.filter(Boolean).join(" and ");
  }

  fits({ id, metrics }) {
    const { memory, worst } = this.limits;
    const dearest = Math.max(metrics.accesses_malloc_max, metrics.accesses_realloc_max ?? 0, metrics.accesses_free_max);
    return (memory === null || this.data.reserves[id]?.[0] <= memory) && (worst === null || dearest <= worst);
  }

  // What is said of a recipe; within bounds, what load it serves there.
  within(recipe, plain) {
    const { memory } = this.limits;
    const bounds = this.bounds();
    if (!bounds || !this.fits(recipe)) return plain;
    const served = memory === null ? "" : this.served(recipe, memory);
    return `${bounds[0].toUpperCase()}${bounds.slice(1)}: ${plain[0].toLowerCase()}${plain.slice(1)}${served}`;
  }

  // As Decision.served: along a straight line between the two loads that were tried.
  served(recipe, arena) {
    const [{ times }, [reserve, more]] = [this.data, this.data.reserves[recipe.id]];
    if (more === null || arena < reserve) return "";
    const load = arena >= more ? times : 1 + ((times - 1) * (arena - reserve)) / (more - reserve);
    return ` ${number(arena, "bytes")} serve ${load < times ? `some ${load.toFixed(1)}` : times} times the recorded load.`;
  }

  describe(recipe) {
    const pick = recipe.balanced ? ", the balanced pick" : "";
    element("details-kind").textContent = kinds[recipe.kind] + (recipe.name && recipe.kind === "front" ? ", zoo allocator" : "") + pick;
    element("details-name").textContent = recipe.label;
    element("details-summary").textContent = recipe.summary;
    element("details-command").textContent = `heapwright generate ${this.data.source}:${recipe.id} -o heap/`;
    element("details-toml").textContent = recipe.toml;
    const measured = Object.keys(this.data.metrics).filter((key) => key in recipe.metrics);
    this.fill("details-objectives", this.data.objectives, recipe);
    this.fill("details-metrics", measured.filter((key) => !this.data.objectives.includes(key)), recipe);
    element("details-body").hidden = false;
  }

  fill(table, keys, recipe) {
    const found = keys.map((key) => {
      const row = document.createElement("tr");
      const heading = Object.assign(document.createElement("th"), { scope: "row" });
      heading.append(term(this.data.metrics[key].words, this.data.metrics[key].meaning));
      const cell = Object.assign(document.createElement("td"), { textContent: number(recipe.metrics[key], this.data.metrics[key].unit) });
      row.append(heading, cell);
      return row;
    });
    element(table).tBodies[0].replaceChildren(...found);
  }

  showMaps(recipe) {
    const drawn = [...document.querySelectorAll("[data-heap]")];
    for (const heap of drawn) heap.classList.toggle("selected", heap.dataset.heap === recipe.id);
    const there = drawn.some((heap) => heap.dataset.heap === recipe.id);
    for (const note of document.querySelectorAll(".no-map")) {
      note.hidden = there;
      note.querySelector("b").textContent = recipe.label;
      note.querySelector("code").textContent = `heapwright report ${this.data.source} --heap ${recipe.id} -o ${recipe.id}.html`;
    }
  }

  // A line at the foot of the window, so that the selection stays in view.
  showBar(recipe) {
    const told = this.data.objectives.map((key) => `${this.data.metrics[key].words} ${number(recipe.metrics[key], this.data.metrics[key].unit)}`);
    element("selection-name").textContent = recipe.label;
    element("selection-metrics").textContent = told.join(" · ");
    element("selection").hidden = recipe.id === this.data.selected;
  }

  offerAxes() {
    const [first, second] = [element("axis-x"), element("axis-y")];
    for (const choice of [first, second])
      choice.append(...this.data.offered.map((key) => new Option(this.data.metrics[key].words, key)));
    [first.value, second.value] = this.data.axes;
    // The same metric twice shows nothing: the other axis takes the one that was there.
    first.addEventListener("change", () => {
      if (first.value === second.value) second.value = this.plot.x;
      this.turn();
    });
    second.addEventListener("change", () => {
      if (first.value === second.value) first.value = this.plot.y;
      this.turn();
    });
  }

  offerBudget() {
    const { budgets } = this.data;
    if (!budgets) return;
    const sliders = { memory: element("budget-memory"), worst: element("budget-worst") };
    const told = { memory: (bytes) => number(bytes, "bytes"), worst: (most) => `${number(most, "count")} loads and stores` };
    const read = () => {
      for (const [what, slider] of Object.entries(sliders)) {
        const at = Number(slider.value);
        this.limits[what] = at < budgets[what].length ? budgets[what][at] : null;
        const text = this.limits[what] === null ? "no limit" : told[what](this.limits[what]);
        slider.setAttribute("aria-valuetext", text);
        element(`${slider.id}-told`).textContent = text;
      }
    };
    const follow = () => {
      read();
      address.put(this.limits);
      const at = budgets.picks[Number(sliders.worst.value)][Number(sliders.memory.value)];
      if (at !== null) return this.choose((this.pick = this.recipes[at].id));
      element("answer-text").textContent = `Nothing that may ship serves what was explored ${this.bounds()}.`;
      element("beside").replaceChildren();
      element("others").hidden = true;
    };
    for (const [what, slider] of Object.entries(sliders)) {
      slider.max = slider.value = budgets[what].length;
      slider.addEventListener("input", follow);
    }
    element("budget").addEventListener("reset", () => setTimeout(() => {
      for (const slider of Object.values(sliders)) slider.value = slider.max;
      follow();
    }));
    // The sliders as the address has them: at its bounds, or the next below.
    this.budget = (chosen) => {
      for (const [what, slider] of Object.entries(sliders)) {
        const bound = Number(chosen.get(what) ?? Infinity);
        const below = budgets[what].filter((one) => one <= bound).length - 1;
        slider.value = bound > budgets[what].at(-1) ? slider.max : Math.max(0, below);
      }
      read();
      const at = budgets.picks[Number(sliders.worst.value)][Number(sliders.memory.value)];
      if (at === null) follow();
      else this.pick = this.recipes[at].id;
    };
    read();
    element("budget").hidden = false;
  }
}

async function copy(button) {
  const text = element(button.dataset.copies);
  try {
    await navigator.clipboard.writeText(text.textContent);
  } catch {
    getSelection().selectAllChildren(text);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

async function begin() {
  const data = await unpack(element("data").textContent);
  for (const button of document.querySelectorAll("button[data-copies]")) button.addEventListener("click", () => copy(button));
  for (const [at, table] of document.querySelectorAll(".scroll.sortable").entries()) enliven(table, `sort-${at}`);
  tellTerms();
  document.documentElement.classList.add("live");
  fit(data.stills);
  await drawTraces(data, address);
  if (data.selected) new Study(data);
  document.documentElement.dataset.ready = "true";
}

begin().catch((error) => {
  document.documentElement.classList.remove("live");
  explain(error);
  throw error;
});
