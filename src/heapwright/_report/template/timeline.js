// Who holds the live bytes of a trace, and bytes over time and heap map of a heap on it, as much as is in view.

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

// A plot in the place of a still one: it can be dragged over, and is redrawn as the view turns.
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

  // Of each pixel across, from where to where rising calls lie in it; where none does, the last one before.
  stretches(calls) {
    let at = lastUpTo(calls, this.view.from) - 1;
    return Array.from({ length: this.across }, (_, x) => {
      const [edge, begin] = [this.view.callAt((x + 1) / this.across), at];
      while (at + 1 < calls.length && calls[at + 1] <= edge) at++;
      return [begin === at ? at : begin + 1, at + 1];
    });
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

// A plot of bytes over time, which shows the values under the pointer, else those of the moment.
class Curves extends Plot {
  constructor(place, view, heap, clicked) {
    super(place, view, heap, TALL, clicked);
    place.addEventListener("pointermove", (event) => {
      const { left, width } = this.inside();
      this.read(view.callAt((event.clientX - left) / width));
    });
    place.addEventListener("pointerleave", () => this.read(heap.shown));
  }

  mark() {
    super.mark();
    this.read(this.heap.shown);
  }

  // Where a number for each pixel across lies.
  spots(values, most) {
    return values.map((bytes, x) => `${FRAME.left + x + 0.5} ${(FRAME.top + TALL - (bytes / most) * TALL).toFixed(1)}`);
  }

  line(values, most) {
    return `M${this.spots(values, most).join("L")}`;
  }

  area(low, high, most) {
    return `${this.line(high, most)}L${this.spots(low, most).reverse().join("L")}Z`;
  }
}

// Who holds the live bytes, one above the other, where they are most in each pixel across.
class Holders extends Curves {
  paint() {
    const { event, total, bytes, groups } = this.heap;
    const tallest = (from, to) => {
      let best = from;
      for (let at = from + 1; at < to; at++) if (total[at] > total[best]) best = at;
      return best;
    };
    const columns = this.stretches(event).map(([from, to]) => tallest(from, to));
    const most = columns.reduce((one, at) => Math.max(one, total[at]), 1);
    let low = columns.map(() => 0);
    const areas = groups.map(([, colour], group) => {
      const high = columns.map((at, x) => low[x] + bytes[group][at]);
      const path = drawn("path", { class: "held", fill: colour, d: this.area(low, high, most) });
      low = high;
      return path;
    });
    return [legendOf(groups), framed(this.width, this.view, TALL, most, "live bytes requested, B", ...areas)];
  }

  read(call) {
    const { event, total, bytes, groups } = this.heap;
    const at = lastUpTo(event, call);
    const told = (value) => value.toLocaleString("en");
    const parts = groups.map(([name], group) => `${name}: ${told(bytes[group][at])}`);
    this.readout.textContent = `After call ${told(event[at])}: ${told(total[at])} bytes. ${parts.join("; ")}.`;
  }
}

class Timeline extends Curves {
  // The least and the most of each series in each pixel across.
  bands() {
    const { samples } = this.heap;
    const bands = Object.fromEntries(SERIES.map((key) => [key, { low: [], high: [] }]));
    for (const [from, to] of this.stretches(samples.call)) {
      for (const key of SERIES) {
        const inside = samples[key].slice(from, to);
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
    const { low, high } = bands.requested;
    const svg = framed(
      this.width, view, TALL, most, "bytes",
      drawn("path", { class: "ground", d: this.area(low.map(() => 0), low, most) }),
      drawn("path", { class: "band", d: this.area(low, high, most) }),
      ...SERIES.map((key) => drawn("path", { class: `series ${key}`, d: this.line(bands[key].high, most) })),
    );
    return [legendOf(SERIES.map((key) => [key, `var(--${key})`])), svg];
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

// Its argument is what page.py packs; `shown` is the call that its animation shows.
function unpackedHeap(told) {
  const [samples, looks] = [told.samples, told.looks].map((columns) => Object.fromEntries(Object.entries(columns).map(([key, values]) => [key, values && summed(values)])));
  samples.allocated = samples.spare.map((bytes, at) => bytes + samples.requested[at]);
  return { ...told, samples, looks };
}

function unpackedHolding({ event, bytes, groups }, heap) {
  const rows = bytes.map(summed);
  const total = rows[0].map((_, at) => rows.reduce((sum, row) => sum + row[at], 0));
  return { event: summed(event), bytes: rows, groups, total, get shown() { return heap.shown; } };
}

// All traces: what is drawn of one shows one part of it and one moment, and the address has both.
async function drawTraces({ heaps, holdings, animations }, address) {
  const traces = new Map();
  for (const told of heaps) {
    const heap = unpackedHeap(told);
    heap.pixels = await pixelsOf(told.picture);
    const { trace, calls, arena, regions, frames } = animations[told.animation];
    heap.arena = arena;
    heap.upward = regions.length === 1 && frames.high.every((high) => high >= arena);
    if (!traces.has(trace)) traces.set(trace, { view: new View(trace, calls, heap.samples, address), drawn: [] });
    const { view, drawn: beside } = traces.get(trace);
    heap.most = () => Math.max(...beside.map(({ heap: { samples } }) => samples.footprint[lastUpTo(samples.call, view.to)]));
    const animation = new HeapAnimation(element(told.animation), animations[told.animation], heap, view);
    beside.push({ heap, animation });
    new Timeline(element(told.timeline), view, heap, (event, call) => animation.goTo(call)).draw();
    const map = new HeapMap(element(told.map), view, heap, (event, call, address) => animation.look(call, address));
    map.draw();
    animation.tells.push(map.readout);
  }
  for (const told of holdings) {
    const { view, drawn: [{ heap, animation }] } = traces.get(told.trace);
    new Holders(element(told.plot), view, unpackedHolding(told, heap), (event, call) => animation.goTo(call)).draw();
  }
  for (const bar of document.querySelectorAll(".zoom")) {
    const { view } = traces.get(bar.dataset.trace);
    steer(bar, view);
    addEventListener("hashchange", () => view.read());
    view.read();
  }
}
