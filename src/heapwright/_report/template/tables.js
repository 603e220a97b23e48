// Tables that are sorted by a click on a heading and filtered by words.

const FILTERED_FROM = 9; // rows

// `key`: what the address calls the table's order.
function enliven(scroll, key) {
  const table = scroll.querySelector("table");
  const body = table.tBodies[0];
  for (const [column, heading] of [...table.tHead.rows[0].cells].entries()) {
    const button = document.createElement("button");
    button.type = "button";
    const told = heading.querySelector("abbr");
    if (told) button.title = told.title;
    told?.replaceWith(...told.childNodes);
    button.append(...heading.childNodes);
    heading.replaceChildren(button);
    button.addEventListener("click", () => address.put({ [key]: sort(table, column) }));
  }
  const [, wanted, descending] = /^(\d+)(-descending)?$/.exec(address.read().chosen.get(key)) ?? [];
  if (Number(wanted) < table.tHead.rows[0].cells.length) for (const _ of descending ? [1, 2] : [1]) sort(table, Number(wanted));
  if (body.rows.length < FILTERED_FROM) return;
  const input = Object.assign(document.createElement("input"), { type: "search", placeholder: "Filter" });
  input.setAttribute("aria-label", `Filter: ${scroll.getAttribute("aria-label")}`);
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase().split(/\s+/);
    for (const row of body.rows) row.hidden = !wanted.every((word) => row.textContent.toLowerCase().includes(word));
  });
  scroll.before(input);
}

// Returns the order as the address has it.
function sort(table, column) {
  const headings = table.tHead.rows[0].cells;
  const way = headings[column].getAttribute("aria-sort") === "ascending" ? -1 : 1;
  for (const heading of headings) heading.removeAttribute("aria-sort");
  headings[column].setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, value: valueOf(row.cells[column]) }));
  // Rows without a number come last, in either order.
  rows.sort(({ value: one }, { value: other }) => {
    if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
    return way * (typeof one === "number" ? one - other : one.localeCompare(other));
  });
  table.tBodies[0].append(...rows.map(({ row }) => row));
  return way > 0 ? `${column}` : `${column}-descending`;
}

function valueOf(cell) {
  const text = (cell.querySelector("a") ?? cell).textContent.trim();
  const figure = cell.tagName === "TD" ? /^[+\-−]?[\d,]+(\.\d+)?/.exec(text) : null;
  return figure ? Number(figure[0].replaceAll(",", "").replace("−", "-")) : text;
}
