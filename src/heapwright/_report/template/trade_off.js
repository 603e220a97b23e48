// The plot of recipes over two metrics that the reader chooses.

const AXIS = { left: 62, bottom: 46, top: 8, right: 8 };
const INSET = [0.3, 0.25, 0.2]; // shares of the plot that the small one may take
const REACH = 14; // pixels from the pointer within which a point is meant

function drawn(name, attributes = {}, ...inside) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

class TradeOff {
  // `place`: where to draw; `data`, `recipes`: as page.js has them; `choose`: called with the recipe that is clicked on.
  constructor(place, data, recipes, choose) {
    Object.assign(this, { place, data, recipes, choose, selected: null, whole: false });
    [this.x, this.y] = data.axes;
    this.readout = document.getElementById("trade-off-readout");
    this.heading = place.closest("figure").querySelector("h3");
    place.addEventListener("pointermove", (event) => this.point(event));
    place.addEventListener("pointerleave", () => this.tell(null));
    place.addEventListener("click", (event) => this.click(event));
    place.addEventListener("keydown", (event) => this.step(event));
    new ResizeObserver(() => place.clientWidth !== this.width && this.draw()).observe(place);
  }

  show(change) {
    Object.assign(this, change);
    this.draw();
  }

  get front() {
    return frontOf(this.recipes, this.x, this.y, this.data.metrics);
  }

  // What the axes have to hold: the front, the pick, what most would take, and the recipe selected.
  inView(known, front) {
    const wanted = new Set([...this.data.rivals, this.data.selected, this.selected]);
    return this.whole ? known : known.filter((one) => wanted.has(one.id) || front.has(one));
  }

  draw() {
    const width = (this.width = this.place.clientWidth);
    if (!width) return;
    const { x, y } = this;
    const height = Math.round(Math.min(520, Math.max(340, width * 0.72)));
    const box = { left: AXIS.left, top: AXIS.top, right: width - AXIS.right, bottom: height - AXIS.bottom };
    const known = this.recipes.filter((one) => x in one.metrics && y in one.metrics);
    const front = new Set(this.front);
    const view = this.inView(known, front);
    const across = axisOf(view.map((one) => one.metrics[x]), box.left, box.right);
    const up = axisOf(view.map((one) => one.metrics[y]), box.bottom, box.top);
    const at = (one) => ({ x: across.at(one.metrics[x]), y: up.at(one.metrics[y]), one, kind: this.kindOf(one, front) });
    const inside = (spot) => spot.x >= box.left && spot.x <= box.right && spot.y >= box.top && spot.y <= box.bottom;
    const spots = known.map(at).filter(inside);
    const marks = spots.filter((spot) => spot.kind !== "cloud" || this.standsOut(spot.one));
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": this.words(front, known) });
    const inset = view.length < known.length ? this.insetBox(marks, box) : null;
    const names = this.names(svg, marks, box, inset);
    const free = (spot) => !marks.includes(spot) && !names.some(({ box: name, point }) => distance(name, spot) <= distance(name, point) + 2);
    const cloud = spots.filter((spot) => spot.kind === "cloud" && free(spot) && !(inset && distance(inset, spot) < 4));
    this.spots = [...cloud, ...marks];
    svg.append(
      this.grid(across, up, box),
      drawn("path", { class: "cloud", d: cloud.map((spot) => `M${spot.x.toFixed(1)} ${spot.y.toFixed(1)}h0`).join("") }),
      this.steps([...front].map(at), box),
      ...marks.map((spot) => this.mark(spot)),
      ...(inset ? [this.inset(inset, known, front, across, up)] : []),
      ...names.map((name) => this.name(name)),
    );
    this.place.replaceChildren(svg);
    const count = known.length < this.recipes.length ? known.length : this.data.admitted;
    this.heading.textContent = `${number(count, "count")} recipes: ${this.data.metrics[x].words} against ${this.data.metrics[y].words}`;
    this.place.dataset.points = known.length;
    this.place.dataset.front = [...front].map((one) => one.id).join(" ");
  }

  kindOf(one, front) {
    if (front.has(one)) return "front";
    if (one.name) return "zoo";
    return one.kind === "front" ? "elsewhere" : "cloud";
  }

  standsOut(one) {
    return one.id === this.selected || one.id === this.data.selected;
  }

  words(front, known) {
    const { x, y, data } = this;
    const told = (one) => `${one.label} ${number(one.metrics[x], data.metrics[x].unit)} and ${number(one.metrics[y], data.metrics[y].unit)}`;
    const pick = known.find((one) => one.id === data.selected);
    const chosen = known.find((one) => one.id === this.selected && one !== pick);
    const shown = [...front].slice(0, 12).map(told).join("; ");
    return (
      `${data.metrics[x].words} against ${data.metrics[y].words} of ${known.length} recipes. On the front of these two: ${shown}` +
      `${front.size > 12 ? ` and ${front.size - 12} more` : ""}.${pick ? ` The pick: ${told(pick)}.` : ""}${chosen ? ` Selected: ${told(chosen)}.` : ""}`
    );
  }

  grid(across, up, box) {
    const group = drawn("g", { class: "axes" });
    let free = -Infinity;
    for (const value of ticksOf(across)) {
      const [at, text] = [across.at(value), short(value)];
      group.append(drawn("line", { x1: at, x2: at, y1: box.top, y2: box.bottom }));
      if (at - text.length * 3.5 < free) continue;
      group.append(drawn("text", { x: at, y: box.bottom + 16, "text-anchor": "middle" }, text));
      free = at + text.length * 3.5 + 8;
    }
    for (const value of ticksOf(up)) {
      const at = up.at(value);
      group.append(drawn("line", { x1: box.left, x2: box.right, y1: at, y2: at }));
      group.append(drawn("text", { x: box.left - 6, y: at + 4, "text-anchor": "end" }, short(value)));
    }
    const middle = (box.top + box.bottom) / 2;
    group.append(
      drawn("text", { x: (box.left + box.right) / 2, y: box.bottom + 38, "text-anchor": "middle" }, this.title(this.x, across)),
      drawn("text", { transform: `translate(13 ${middle}) rotate(-90)`, "text-anchor": "middle" }, this.title(this.y, up)),
    );
    return group;
  }

  title(key, axis) {
    const { words, unit } = this.data.metrics[key];
    return `${words}${unit === "count" || unit === "ratio" ? "" : `, ${unit}`}${axis.log ? " (log)" : ""}`;
  }

  // The front joined by steps: beyond these no recipe was found.
  steps(spots, box) {
    const inside = (spot) => [Math.min(box.right, Math.max(box.left, spot.x)), Math.min(box.bottom, Math.max(box.top, spot.y))];
    const path = spots.map(inside).map(([x, y], index) => (index ? `H${x.toFixed(1)}V${y.toFixed(1)}` : `M${x.toFixed(1)} ${y.toFixed(1)}`));
    return drawn("path", { class: "steps", d: path.join("") });
  }

  mark({ x, y, one, kind }) {
    const group = drawn("g", { class: `mark ${kind}`, "data-id": one.id, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
    if (one.id === this.data.selected) group.append(drawn("circle", { class: "pick", r: 9 }));
    if (one.id === this.selected) group.append(drawn("circle", { class: "chosen", r: 12 }));
    group.append(kind === "zoo" ? drawn("path", { d: "M0-6L6 0L0 6L-6 0Z" }) : drawn("circle", { r: kind === "cloud" ? 3 : 4.5 }));
    return group;
  }

  // Where names stand: of the recipe selected, the pick, the incumbents, the zoo on the front, the rest of the zoo.
  names(svg, marks, box, inset) {
    const weight = ({ one, kind }) =>
      [one.id === this.selected, one.id === this.data.selected, this.data.rivals.includes(one.id), kind === "front", true].indexOf(true);
    const named = marks.filter(({ one }) => one.name || this.standsOut(one));
    named.sort((one, other) => weight(one) - weight(other));
    const measure = document.createElement("canvas").getContext("2d");
    const family = getComputedStyle(this.place).fontFamily;
    const wanted = named.map((point) => {
      const words = [point.one.name || (point.one.id !== this.data.selected && point.one.id), point.one.id === this.data.selected && "the pick"];
      const text = words.filter(Boolean).join(" · ");
      measure.font = `${this.standsOut(point.one) ? 600 : 400} 12px ${family}`;
      return { point, text, width: Math.ceil(measure.measureText(text).width), height: 14 };
    });
    const boxes = placeNames(wanted, marks, box, inset ? [inset] : []);
    return wanted.map((one, index) => ({ ...one, box: boxes[index] })).filter((one) => one.box);
  }

  name({ box, text, point }) {
    const own = point.one.id === this.data.selected || point.one.id === this.selected ? "own" : point.kind;
    // At any width of its fonts, it ends where its box is nearest to the point.
    const [x, anchor] = box.left > point.x ? [box.left, "start"] : box.right < point.x ? [box.right, "end"] : [(box.left + box.right) / 2, "middle"];
    return drawn("text", { class: `name ${own}`, "data-names": point.one.id, x, y: box.top + 11, "text-anchor": anchor }, text);
  }

  insetBox(marks, box) {
    return emptyBox(marks, box, INSET, 6);
  }

  // All recipes in small, and a frame around what the axes show.
  inset(box, known, front, across, up) {
    const small = (key, from, to) => {
      const values = known.map((one) => one.metrics[key]);
      const axis = axisOf(values, 0, 2 * MARGIN + Math.abs(to - from)); // its margins lie outside
      return (value) => from + Math.sign(to - from) * (axis.at(value) - MARGIN);
    };
    const [x, y] = [small(this.x, box.left + 6, box.right - 6), small(this.y, box.bottom - 6, box.top + 6)];
    const dots = (some) => some.map((one) => `M${x(one.metrics[this.x]).toFixed(1)} ${y(one.metrics[this.y]).toFixed(1)}h0`).join("");
    const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
    const [left, right] = [across.low, across.high].map((value) => clamp(x(value) || box.left, box.left, box.right));
    const [bottom, top] = [up.low, up.high].map((value) => clamp(y(value) || box.bottom, box.top, box.bottom));
    return drawn(
      "g",
      { class: "inset" },
      drawn("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top }),
      drawn("path", { class: "cloud", d: dots(known.filter((one) => !front.has(one))) }),
      drawn("path", { class: "front", d: dots([...front]) }),
      drawn("rect", { class: "frame", x: left, y: top, width: right - left, height: bottom - top }),
    );
  }

  nearest(event) {
    const frame = this.place.getBoundingClientRect();
    const at = { x: event.clientX - frame.left, y: event.clientY - frame.top };
    const far = (spot) => Math.hypot(spot.x - at.x, spot.y - at.y) + (spot.kind === "cloud" ? 4 : 0);
    const best = (this.spots ?? []).reduce((one, other) => (one && far(one) <= far(other) ? one : other), null);
    return best && far(best) <= REACH ? best.one : null;
  }

  point(event) {
    const one = this.nearest(event);
    this.place.style.cursor = one ? "pointer" : "";
    this.tell(one);
  }

  // Shown above the plot, where it covers nothing.
  tell(one) {
    const { x, y, data } = this;
    const told = (key) => `${data.metrics[key].words} ${number(one.metrics[key], data.metrics[key].unit)}`;
    this.readout.textContent = one ? `${one.label}: ${told(x)}, ${told(y)}; ${one.summary}` : this.readout.dataset.empty;
  }

  click(event) {
    const one = this.nearest(event);
    if (one) this.choose(one.id);
  }

  // Arrow keys go along the front, from where the recipe selected stands in x.
  step(event) {
    const way = { ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1 }[event.key];
    if (!way || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const front = this.front.sort((one, other) => one.metrics[this.x] - other.metrics[this.x]);
    const here = this.recipes.find((one) => one.id === this.selected);
    const at = front.indexOf(here);
    const after = here ? front.filter((one) => one.metrics[this.x] <= here.metrics[this.x]).length : 0;
    const next = at >= 0 ? at + way : way > 0 ? after : after - 1;
    const one = front[Math.min(front.length - 1, Math.max(0, next))];
    if (one) {
      this.choose(one.id);
      this.tell(one);
    }
  }
}
