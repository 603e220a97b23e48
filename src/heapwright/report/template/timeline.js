// Bytes over time and the heap map of one heap on one trace, as much of them as is in view.

const FRAME = { left: 62, right: 14, top: 8, bottom: 44 };
const TALL = 170; // pixels of the bytes over time
const SERIES = ["footprint", "allocated", "requested"];

// Axes and what is drawn between them: calls or seconds across, bytes upward.
function framed(width, view, height, most, title, ...inside) {
  const box = { left: FRAME.left, top: FRAME.top, right: width - FRAME.right, bottom: FRAME.top + height };
  const [low, high] = view.ends;
  const across = { low, high, log: false, at: (value) => box.left + ((value - low) / (high - low)) * (box.right - box.left) };
  const up = { low: 0, high: most, log: false, at: (value) => box.bottom - (value / most) * height };
  const axes = drawn("g", { class: "axes" });
  const [columns, rows] = [ticksOf(across), ticksOf(up)];
  let free = -Infinity;
  for (const value of columns) {
    const [at, text] = [across.at(value), tickText(value, columns[1] - columns[0] || 1, high)];
    const half = text.length * 3.6;
    axes.append(drawn("line", { x1: at, x2: at, y1: box.top, y2: box.bottom }));
    if (at - half < free || at + half > width) continue;
    axes.append(drawn("text", { x: at, y: box.bottom + 16, "text-anchor": "middle" }, text));
    free = at + half + 8;
  }
  for (const value of rows) {
    const at = up.at(value);
    axes.append(drawn("line", { x1: box.left, x2: box.right, y1: at, y2: at }));
    axes.append(drawn("text", { x: box.left - 6, y: at + 4, "text-anchor": "end" }, tickText(value, rows[1] - rows[0] || 1, most)));
  }
  axes.append(
    drawn("text", { x: (box.left + box.right) / 2, y: box.bottom + 36, "text-anchor": "middle" }, view.byTime ? "seconds since the start" : "calls since the start"),
    drawn("text", { transform: `translate(13 ${box.top + height / 2}) rotate(-90)`, "text-anchor": "middle" }, title),
  );
  const bottom = box.bottom + FRAME.bottom;
  return drawn("svg", { viewBox: `0 0 ${width} ${bottom}`, width, height: bottom, "aria-hidden": "true" }, axes, ...inside);
}

function legendOf(rows) {
  const list = Object.assign(document.createElement("ul"), { className: "legend" });
  for (const [words, colour] of rows) {
    const [line, swatch] = [document.createElement("li"), document.createElement("i")];
    swatch.style.background = colour;
    line.append(swatch, words);
    list.append(line);
  }
  return list;
}

// A plot in the place of a still one: it can be dragged over, and is drawn anew as the view turns.
class Plot {
  // `height`: pixels between the axes; `clicked`: as in brush().
  constructor(place, view, heap, height, clicked) {
    Object.assign(this, { place, view, heap, height });
    const made = (name, className) => Object.assign(document.createElement(name), { className });
    [this.frame, this.now, this.readout] = [made("div", "frame"), made("div", "now"), made("p", "readout")];
    Object.assign(this.now.style, { top: `${FRAME.top}px`, height: `${height}px` });
    place.setAttribute("role", "group");
    place.tabIndex = 0;
    place.style.maxWidth = "none";
    place.classList.remove("picture");
    brush(place, view, () => this.inside(), clicked);
    view.follow((turned) => (turned ? this.draw() : this.mark()));
    new ResizeObserver(() => place.clientWidth !== this.width && this.draw()).observe(place);
  }

  inside() {
    const { left, top, width } = this.frame.getBoundingClientRect();
    return { left: left + FRAME.left, top: top + FRAME.top, width: width - FRAME.left - FRAME.right, height: this.height };
  }

  get across() {
    return Math.max(this.width - FRAME.left - FRAME.right, 1);
  }

  draw() {
    this.width = this.place.clientWidth;
    if (!this.width) return;
    const [legend, ...inside] = this.paint();
    this.frame.replaceChildren(...inside, this.now);
    this.place.replaceChildren(legend, this.frame, this.readout);
    this.mark();
  }

  // A line at the moment that is shown.
  mark() {
    this.now.style.left = `${FRAME.left + this.view.share(this.heap.shown) * this.across}px`;
  }
}

class Timeline extends Plot {
  constructor(place, view, heap, clicked) {
    super(place, view, heap, TALL, clicked);
    place.addEventListener("pointermove", (event) => {
      const { left, width } = this.inside();
      this.read(view.callAt((event.clientX - left) / width));
    });
    place.addEventListener("pointerleave", () => this.read(heap.shown));
  }

  // The least and the most of each series in each pixel across; where nothing was noted, what was before.
  bands() {
    const { samples } = this.heap;
    const bands = Object.fromEntries(SERIES.map((key) => [key, { low: [], high: [] }]));
    let [at, end] = [lastUpTo(samples.call, this.view.from) - 1, samples.call.length];
    for (let x = 0; x < this.across; x++) {
      const edge = this.view.callAt((x + 1) / this.across);
      const begin = at;
      while (at + 1 < end && samples.call[at + 1] <= edge) at++;
      for (const key of SERIES) {
        const inside = samples[key].slice(begin === at ? at : begin + 1, at + 1);
        bands[key].low.push(Math.min(...inside));
        bands[key].high.push(Math.max(...inside));
      }
    }
    return bands;
  }

  paint() {
    const { heap, view } = this;
    const most = Math.max(heap.most(), 1);
    const bands = this.bands();
    const y = (bytes) => (FRAME.top + TALL - (bytes / most) * TALL).toFixed(1);
    const line = (values) => values.map((bytes, x) => `${x ? "L" : "M"}${FRAME.left + x + 0.5} ${y(bytes)}`).join("");
    const area = (low, high) => `${line(high)}${low.map((bytes, x) => `L${FRAME.left + x + 0.5} ${y(bytes)}`).reverse().join("")}Z`;
    const { low, high } = bands.requested;
    const svg = framed(
      this.width, view, TALL, most, "bytes",
      drawn("path", { class: "ground", d: area(low.map(() => 0), low) }),
      drawn("path", { class: "band", d: area(low, high) }),
      ...SERIES.map((key) => drawn("path", { class: `series ${key}`, d: line(bands[key].high) })),
    );
    return [legendOf(SERIES.map((key) => [key, `var(--${key})`])), svg];
  }

  mark() {
    super.mark();
    this.read(this.heap.shown);
  }

  read(call) {
    const { samples } = this.heap;
    const at = lastUpTo(samples.call, call);
    const told = SERIES.map((key) => `${key} ${samples[key][at].toLocaleString("en")}`).join(", ");
    this.readout.textContent = `After call ${samples.call[at].toLocaleString("en")}: ${told} bytes.`;
  }
}

// The picture of the heap map as numbers, a pixel each: column by column, address 0 last.
async function pixelsOf(url) {
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: image.naturalWidth, height: image.naturalHeight });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, canvas.width, canvas.height);
}

class HeapMap extends Plot {
  constructor(place, view, heap, clicked) {
    super(place, view, heap, heap.pixels.height, (event, call) => clicked(event, call, this.addressAt(event)));
    this.canvas = document.createElement("canvas");
    Object.assign(this.canvas.style, { left: `${FRAME.left}px`, top: `${FRAME.top}px` });
  }

  addressAt(event) {
    const { top } = this.canvas.getBoundingClientRect();
    const up = 1 - (event.clientY - top) / this.height;
    return Math.floor(Math.min(Math.max(up, 0), 0.9999) * this.top);
  }

  // Where memory is used from address 0 on, what the part in view does not reach is left out.
  get top() {
    const { upward, most, extent } = this.heap;
    return upward ? Math.min(Math.max(most(), 1), extent) : extent;
  }

  paint() {
    const { view, heap, canvas, height, top } = this;
    const width = this.across;
    Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    const picture = context.createImageData(width, height);
    const [from, to] = [heap.pixels, picture].map(({ data }) => new Uint32Array(data.buffer));
    const columns = view.columns(heap.looks.event, width).map((at) => Math.floor(at / heap.every));
    for (let x = 0; x < width; x++) {
      const reach = heap.looks.reach[columns[x] * heap.every];
      for (let row = 0; row < height; row++) {
        const address = ((height - row - 0.5) * top) / height;
        if (address > heap.arena) continue;
        const cell = Math.max(Math.floor(height * (1 - address / reach)), 0);
        to[row * width + x] = from[cell * heap.pixels.width + columns[x]];
      }
    }
    for (const pattern of heap.patterns) this.lay(picture, pattern);
    context.putImageData(picture, 0, 0);
    return [legendOf(heap.states), framed(this.width, view, height, top, "address in the arena, B"), canvas];
  }

  // A pattern over what has about the colour of its state, as in print; nothing is where no arena is.
  lay({ width, height, data }, { of, colour, diagonal, every }) {
    for (let row = 0; row < height; row += every) {
      for (let x = (diagonal - (row % diagonal)) % diagonal; x < width; x += diagonal) {
        const at = 4 * (row * width + x);
        if (data[at + 3] && of.every((part, of) => Math.abs(data[at + of] - part) < 40)) data.set(colour, at);
      }
    }
  }
}

// `told`: as page.py packs it; `shown` is the call that its film shows.
function unpackedHeap(told) {
  const [samples, looks] = [told.samples, told.looks].map((columns) => Object.fromEntries(Object.entries(columns).map(([key, values]) => [key, values && summed(values)])));
  samples.allocated = samples.spare.map((bytes, at) => bytes + samples.requested[at]);
  return { ...told, samples, looks };
}

// All heaps of all traces: those of one trace show one part of it and one moment, and the address has both.
async function drawHeaps(heaps, films, address) {
  const views = new Map();
  for (const told of heaps) {
    const heap = unpackedHeap(told);
    heap.pixels = await pixelsOf(told.picture);
    const { trace, calls, arena, regions, frames } = films[told.film];
    heap.arena = arena;
    heap.upward = regions.length === 1 && frames.high.every((high) => high >= arena);
    if (!views.has(trace)) views.set(trace, { view: new View(trace, calls, heap.samples, address), heaps: [] });
    const { view, heaps: beside } = views.get(trace);
    beside.push(heap);
    heap.most = () => Math.max(...beside.map(({ samples }) => samples.footprint[lastUpTo(samples.call, view.to)]));
    const film = new Film(element(told.film), films[told.film], heap, view);
    new Timeline(element(told.timeline), view, heap, (event, call) => film.goTo(call)).draw();
    const map = new HeapMap(element(told.map), view, heap, (event, call, address) => film.look(call, address));
    map.draw();
    film.tells.push(map.readout);
  }
  for (const bar of document.querySelectorAll(".zoom")) {
    const { view } = views.get(bar.dataset.trace);
    steer(bar, view);
    addEventListener("hashchange", () => view.read());
    view.read();
  }
}
