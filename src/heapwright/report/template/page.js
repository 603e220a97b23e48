(async () => {
  "use strict";

  const element = (id) => document.getElementById(id);
  const kinds = { front: "On the front", zoo: "Zoo allocator", cloud: "Off the front" };

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  function explain(error) {
    element("problem").textContent = `The plots could not be drawn (${error.message}). They need a browser of 2023 or later.`;
    element("problem").hidden = false;
  }

  function number(value, unit) {
    const text = Number.isInteger(value) ? value.toLocaleString("en") : value.toLocaleString("en", { maximumSignificantDigits: 4 });
    return unit === "ratio" || unit === "count" ? text : `${text} ${unit}`;
  }

  function find(recipes, wanted) {
    if (!wanted) return undefined;
    const exact = recipes.find((recipe) => recipe.id === wanted || recipe.name === wanted);
    if (exact || wanted.length < 4) return exact;
    const near = recipes.filter((recipe) => recipe.id.startsWith(wanted));
    return near.length === 1 ? near[0] : undefined;
  }

  function fill(table, keys, recipe, data) {
    const rows = keys.map((key) => {
      const row = document.createElement("tr");
      row.title = data.metrics[key].meaning;
      row.append(document.createElement("th"), document.createElement("td"));
      row.cells[0].textContent = key;
      row.cells[1].textContent = number(recipe.metrics[key], data.metrics[key].unit);
      return row;
    });
    element(table).tBodies[0].replaceChildren(...rows);
  }

  function describe(recipe, data) {
    const pick = recipe.balanced ? ", the balanced pick" : "";
    element("details-kind").textContent = kinds[recipe.kind] + (recipe.name && recipe.kind === "front" ? ", zoo allocator" : "") + pick;
    element("details-name").textContent = recipe.name || recipe.id;
    element("details-summary").textContent = recipe.summary;
    element("details-command").textContent = `heapwright generate ${data.source}:${recipe.id} -o heap/`;
    element("details-toml").textContent = recipe.toml;
    const measured = Object.keys(data.metrics).filter((key) => key in recipe.metrics);
    fill("details-objectives", data.objectives, recipe, data);
    fill("details-metrics", measured.filter((key) => !data.objectives.includes(key)), recipe, data);
    element("details-body").hidden = false;
  }

  function rows(data) {
    return data.recipes.id.map((id, at) => {
      const recipe = Object.fromEntries(Object.entries(data.recipes).map(([key, column]) => [key, column[at]]));
      const measured = Object.entries(data.values).map(([key, column]) => [key, column[at]]).filter(([, value]) => value !== null);
      recipe.metrics = Object.fromEntries(measured);
      recipe.point = { ...recipe.metrics, id, kind: recipe.kind, summary: recipe.summary, label: recipe.name || id };
      return recipe;
    });
  }

  async function draw(data, recipes) {
    const options = { ast: true, actions: { export: true, source: false, compiled: false, editor: false }, renderer: "canvas" };
    const views = new Map();
    for (const [name, spec] of Object.entries(data.figures)) {
      if (name in data.points) {
        const chosen = recipes.filter((recipe) => recipe.id === data.selected);
        const points = data.points[name].map((at) => recipes[at].point);
        spec.datasets = { ...spec.datasets, points, chosen: chosen.map((recipe) => recipe.point) };
        element(name).dataset.points = points.length;
      }
      const { view } = await vegaEmbed(element(name), spec, { ...options, downloadFileName: name });
      views.set(name, view);
    }
    return views;
  }

  function select(wanted, data, recipes, views) {
    const recipe = find(recipes, wanted);
    if (!recipe) return;
    describe(recipe, data);
    for (const row of document.querySelectorAll("tr[data-id]")) row.classList.toggle("selected", row.dataset.id === recipe.id);
    for (const name of Object.keys(data.points)) views.get(name).data("chosen", [recipe.point]).run();
    document.documentElement.dataset.selected = recipe.id;
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

  try {
    const data = await unpack(element("data").textContent);
    const recipes = rows(data);
    drawFilms(data.films);
    const views = await draw(data, recipes);
    const fromAddress = () => select(decodeURIComponent(location.hash.slice(1)), data, recipes, views);
    const choose = (event, item) => {
      if (item && item.datum && item.datum.id) {
        history.replaceState(null, "", `#${item.datum.id}`);
        fromAddress();
      }
    };
    for (const name of Object.keys(data.points)) views.get(name).addEventListener("click", choose);
    for (const button of document.querySelectorAll("button[data-copies]")) button.addEventListener("click", () => copy(button));
    addEventListener("hashchange", fromAddress);
    if (data.selected) {
      select(data.selected, data, recipes, views);
      fromAddress();
    }
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    explain(error);
    throw error;
  }
})();
