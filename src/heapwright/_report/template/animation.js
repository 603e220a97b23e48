const HeapAnimation = (() => {
  "use strict";

  const KINDS = ["static", "long", "short", "cached", "free", "own", "unused"];
  const [STATIC, LONG, SHORT, CACHED, FREE, OWN, UNUSED] = [...KINDS.keys()];
  const LIFETIMES = { [STATIC]: "Static: never freed", [LONG]: "Long-lived", [SHORT]: "Short-lived" };
  const WORDS = ["static", "long", "short", "in a quick list", "free", "the heap's own", "never used yet"];
  const NAMES = { [CACHED]: "a block in a quick list", [FREE]: "a hole", [OWN]: "the heap's own data", [UNUSED]: "what was never used" };
  const SITES = 8;
  const STEPS = 120; // moments of a part of the trace
  const ROWS = { wide: 24, narrow: 44 };
  const [ROW, GAP, STRIP] = [13, 2, 72];
  const PACE = 100; // milliseconds from one moment to the next

  const told = (value) => value.toLocaleString("en");

  function unpacked(animation) {
    const { blocks, frames } = animation;
    let [first, offset] = [0, 0];
    return blocks.first.map((step, at) => {
      first += step;
      offset += blocks.offset[at];
      const requested = blocks.requested[at];
      const lives = blocks.birth[at] >= 0;
      const birth = frames.call[first] - blocks.birth[at];
      const death = blocks.life[at] < 0 ? null : birth + blocks.life[at];
      const site = blocks.site ? blocks.site[at] : -1;
      const size = requested + blocks.spare[at];
      return { first, last: first + blocks.frames[at] - 1, offset, size, requested, kind: blocks.kind[at], lives, birth, death, id: birth + blocks.id[at], site };
    });
  }

  class HeapAnimation {
    // `heap`: the same heap as timeline.js draws it; its `shown` is kept up to date.
    constructor(figure, animation, heap, view) {
      Object.assign(this, { figure, animation, heap, view, wanted: animation.cap });
      this.blocks = unpacked(animation);
      this.part = (name) => figure.querySelector(`.${name}`);
      this.part("stage").hidden = false;
      this.tells = [this.part("reading")];
      this.regions = animation.regions.map((region) => this.addRegion(region));
      this.time = this.part("time");
      this.chooser = this.part("block");
      this.by = "life";
      this.part("by").hidden = animation.sites.length === 0;
      this.time.addEventListener("input", () => view.goTo(this.moments[Number(this.time.value)], false));
      this.time.addEventListener("change", () => this.settle());
      this.chooser.addEventListener("input", () => this.choose(Number(this.chooser.value)));
      this.part("play").addEventListener("click", () => (this.playing ? this.stop() : this.play()));
      this.part("fullest").addEventListener("click", () => this.goToFullest());
      const strip = this.part("strip");
      brush(strip.parentElement, view, () => strip.getBoundingClientRect(), (event, call) => this.goTo(call));
      for (const one of figure.querySelectorAll("input[type=radio]")) one.addEventListener("change", () => { this.by = one.value; this.draw(); });
      new ResizeObserver(() => this.draw()).observe(this.part("stage"));
      for (const medium of ["(prefers-color-scheme: dark)", "print"]) matchMedia(medium).addEventListener("change", () => this.draw());
      view.follow((turned) => this.follow(turned));
      this.call = animation.frames.call[animation.peak];
      this.follow(true);
    }

    // The moments of the slider: those that were kept; of a part of the trace others between them, too.
    momentsInView() {
      const { view, animation } = this;
      const kept = animation.frames.call.filter((call) => call >= view.from && call <= view.to);
      if (view.whole) return kept;
      const steps = Math.min(STEPS, view.to - view.from);
      const others = Array.from({ length: steps + 1 }, (_, at) => view.from + Math.round((at * (view.to - view.from)) / steps));
      return [...new Set([...kept, ...others])].sort((one, other) => one - other);
    }

    follow(turned) {
      if (turned || !this.moments) {
        this.moments = this.momentsInView();
        this.time.max = this.moments.length - 1;
      }
      const at = lastUpTo(this.moments, this.view.moment ?? this.call);
      this.time.value = at;
      this.show(this.moments[at]);
    }

    // Go to the moment next to a call.
    goTo(call) {
      const at = lastUpTo(this.moments, call);
      const [before, after] = [this.moments[at], this.moments[at + 1] ?? Infinity];
      this.view.goTo(call - before <= after - call ? before : after);
    }

    goToFullest() {
      const call = this.animation.frames.call[this.animation.peak];
      this.wanted = this.animation.cap;
      if (call < this.view.from || call > this.view.to) this.view.showAll();
      this.view.goTo(call);
    }

    // Go to a moment, and choose what lies at an address.
    look(call, address) {
      this.goTo(call);
      this.chooseAt(address);
    }

    addRegion(region) {
      const [box, words, canvas] = ["div", "p", "canvas"].map((tag) => document.createElement(tag));
      box.className = "region";
      words.textContent = `${region.label}, addresses ${told(region.start)} to ${told(region.end)}`;
      canvas.setAttribute("role", "img");
      box.append(words, canvas);
      this.part("regions").append(box);
      const found = { ...region, canvas };
      canvas.addEventListener("pointermove", (event) => this.hover(found, event));
      canvas.addEventListener("pointerdown", (event) => this.hover(found, event));
      return found;
    }

    settle() {
      if (!this.playing) this.view.goTo(this.call);
    }

    // From here to the end, or from the begin where this is the end.
    play() {
      const step = () => Number(this.time.value) + 1;
      if (step() >= this.moments.length) this.view.goTo(this.moments[0], false);
      this.part("play").textContent = "Pause";
      this.playing = setInterval(() => (step() < this.moments.length ? this.view.goTo(this.moments[step()], false) : this.stop()), PACE);
    }

    stop() {
      clearInterval(this.playing);
      this.playing = null;
      this.part("play").textContent = "Play";
      this.settle();
    }

    // The blocks after a call. Between two moments that were kept: those allocated then and those to be allocated.
    blocksAt(call) {
      const found = this.blocks.filter((block) => block.first <= this.at && this.at <= block.last);
      if (this.kept) return found;
      const next = (block) => block.first <= this.at + 1 && this.at + 1 <= block.last;
      const there = found.filter((block) => (block.lives ? block.death === null || block.death > call : block.kind === OWN || next(block)));
      const known = new Set(there.map((block) => block.birth));
      return [...there, ...this.blocks.filter((block) => next(block) && block.lives && block.birth <= call && !known.has(block.birth))];
    }

    // What lies there after a call in the order of addresses: blocks, holes, and what was never used.
    items(call) {
      const at = this.kept ? this.at : this.at + 1;
      const blocks = this.blocksAt(call).sort((one, other) => one.offset - other.offset);
      if (this.animation.least) {
        const holes = (this.kept ? this.animation.frames.holes[at] : []).map(([offset, size]) => ({ offset, size, kind: FREE }));
        return [...blocks, ...holes].sort((one, other) => one.offset - other.offset);
      }
      const found = [];
      for (const region of this.animation.regions) {
        let reached = region.start;
        const inside = blocks.filter((block) => block.offset >= region.start && block.offset < region.end);
        for (const block of [...inside, { offset: region.end, size: 0 }]) {
          if (block.offset > reached) found.push(...this.gap(at, reached, block.offset));
          if (block.size) found.push(block);
          reached = Math.max(reached, block.offset + block.size);
        }
      }
      return found;
    }

    gap(at, start, end) {
      const { frames } = this.animation;
      const { samples } = this.heap;
      const used = this.kept ? 0 : samples.footprint[lastUpTo(samples.call, this.call)]; // about as far, in between
      const [low, high] = [Math.min(Math.max(frames.low[this.at], used), frames.low[at]), frames.high[at]];
      const parts = [[start, Math.min(end, low), FREE], [Math.max(start, low), Math.min(end, high), UNUSED], [Math.max(start, high, low), end, FREE]];
      return parts.filter(([from, to]) => from < to).map(([offset, to, kind]) => ({ offset, size: to - offset, kind }));
    }

    // The block chosen stays the same one, else it is what lies at the same address.
    show(call) {
      const before = this.chosen;
      const { frames } = this.animation;
      [this.call, this.at, this.heap.shown] = [call, lastUpTo(frames.call, call), call];
      this.kept = frames.call[this.at] === call;
      this.list = this.items(call);
      this.chooser.max = Math.max(this.list.length - 1, 0);
      const words = this.moment();
      this.part("moment").textContent = words;
      this.time.setAttribute("aria-valuetext", words);
      const wanted = this.wanted ?? (before && before.lives ? before.birth : null);
      this.wanted = null;
      let next = wanted === null ? -1 : this.list.findIndex((one) => one.lives && one.birth === wanted);
      if (next < 0) next = Math.max(this.list.findIndex((one) => before && one.offset + one.size > before.offset), 0);
      this.figure.dataset.call = call;
      this.figure.dataset.items = this.list.length;
      this.choose(next);
    }

    moment() {
      const { frames } = this.animation;
      const of = (key) => told(frames[key][this.at]);
      const counted = (key, thing) => `${of(key)} ${thing}${frames[key][this.at] === 1 ? "" : "s"}`;
      if (!this.kept) return `After call ${told(this.call)}: what lived after call ${of("call")}, or will after call ${told(frames.call[this.at + 1])}. What is born and freed in between is not shown.`;
      return `After call ${of("call")}: ${of("live")} bytes live in ${counted("objects", "object")}, ${of("free")} bytes free in ${counted("count", "hole")}, the largest of ${of("largest")}.`;
    }

    choose(index) {
      this.chosen = this.list[index];
      this.chooser.value = index;
      const words = this.describe(this.chosen);
      this.chooser.setAttribute("aria-valuetext", words);
      for (const place of this.tells) place.textContent = words;
      this.draw();
    }

    describe(item) {
      return item ? `${this.describeAlone(item)}${this.neighbours(item)}` : "Nothing lies here.";
    }

    // What lies right below and above a block, where that is known.
    neighbours(item) {
      const at = this.list.indexOf(item);
      const [below, above] = [this.list[at - 1], this.list[at + 1]];
      const name = (one) => `${one.lives ? `object ${one.id}` : NAMES[one.kind]} (${told(one.size)} bytes)`;
      const found = [below && below.offset + below.size === item.offset && `below it ${name(below)}`, above && item.offset + item.size === above.offset && `above it ${name(above)}`].filter(Boolean);
      return found.length ? ` Right ${found.join(", ")}.` : "";
    }

    describeAlone(item) {
      const where = `at address ${told(item.offset)}`;
      if (item.lives) {
        const age = `age ${told(this.call - item.birth)} calls`;
        const until = item.death === null ? `made by call ${told(item.birth)}, never freed` : `calls ${told(item.birth)} to ${told(item.death)}`;
        const site = this.animation.sites.length ? `; site: ${this.animation.sites[item.site] ?? "one of many smaller ones"}` : "";
        return `Object ${item.id}: ${told(item.requested)} bytes in a block of ${told(item.size)} ${where}; ${WORDS[item.kind]}, ${until}, ${age}${site}.`;
      }
      const size = `${told(item.size)} bytes ${where}`;
      return { [FREE]: `Hole of ${size}.`, [CACHED]: `Block of ${size}, kept in a quick list.`, [OWN]: `The heap's own data: ${size}.`, [UNUSED]: `Never used yet: ${size}.` }[item.kind];
    }

    hover(region, event) {
      const box = region.canvas.getBoundingClientRect();
      const row = Math.floor((event.clientY - box.top - 1) / (ROW + GAP));
      const address = region.start + Math.floor((row + Math.min(Math.max((event.clientX - box.left) / box.width, 0), 0.9999)) * this.across);
      this.chooseAt(address);
    }

    chooseAt(address) {
      const index = this.list.findIndex((one) => one.offset <= address && address < one.offset + one.size);
      if (index >= 0) {
        if (this.list[index] !== this.chosen) this.choose(index);
      } else if (this.animation.least) {
        for (const place of this.tells) place.textContent = this.describeCell(address);
      }
    }

    describeCell(address) {
      const cells = this.animation.cells;
      const count = Object.values(cells)[0][this.at].length;
      const cell = Math.min(Math.floor((address / this.animation.arena) * count), count - 1);
      const shares = Object.entries(cells).map(([kind, frames]) => [kind, (frames[this.at].charCodeAt(cell) - 48) / 9]);
      const used = shares.reduce((sum, [, share]) => sum + share, 0);
      const words = [...shares, ["free", Math.max(1 - used, 0)]].filter(([, share]) => share > 0.05).map(([kind, share]) => `${Math.round(share * 100)} % ${WORDS[KINDS.indexOf(kind)]}`);
      return `Around address ${told(address)}, in blocks below ${told(this.animation.least)} bytes: about ${words.join(", ")}.`;
    }

    colour(name) {
      return this.style.getPropertyValue(`--animation-${name}`).trim();
    }

    colourOf(item) {
      if (this.by === "site" && item.lives) return this.colour(`site-${item.site >= 0 && item.site < SITES ? item.site : SITES}`);
      return this.colour(KINDS[item.kind]);
    }

    // A context in CSS pixels, as sharp as the screen.
    prepared(canvas, height) {
      const [width, scale] = [canvas.clientWidth || this.figure.clientWidth, devicePixelRatio || 1];
      canvas.style.height = `${height}px`;
      [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
      const context = canvas.getContext("2d");
      context.scale(scale, scale);
      return [context, width];
    }

    draw() {
      if (!this.list || !this.figure.clientWidth) return;
      this.style = getComputedStyle(this.figure);
      this.across = Math.ceil(this.animation.arena / (this.figure.clientWidth < 600 ? ROWS.narrow : ROWS.wide));
      for (const region of this.regions) this.drawRegion(region);
      this.drawStrip();
      this.drawKey();
    }

    drawRegion(region) {
      const rows = Math.ceil((region.end - region.start) / this.across);
      const [context, width] = this.prepared(region.canvas, rows * (ROW + GAP));
      const piece = (offset, size) => this.segments(region, offset, size, width);
      const fill = (item, colour) => {
        context.fillStyle = colour;
        for (const [x, y, wide] of piece(item.offset, item.size)) context.fillRect(x, y, wide > 3 ? wide - 1 : wide, ROW);
      };
      context.fillStyle = this.colour("unused");
      context.fillRect(0, 0, width, rows * (ROW + GAP));
      fill({ offset: region.start, size: region.end - region.start }, this.colour("free"));
      if (this.animation.least) this.drawCells(context, region, piece);
      for (const item of this.list) {
        if (item.kind !== FREE && item.offset < region.end && item.offset >= region.start) fill(item, this.colourOf(item));
      }
      this.markHoles(context, region, piece);
      const outline = (item, colour, inset) => {
        if (!item || item.offset < region.start || item.offset >= region.end) return;
        [context.strokeStyle, context.lineWidth] = [colour, 2];
        for (const [x, y, wide] of piece(item.offset, item.size)) context.strokeRect(x + inset, y + inset, Math.max(wide - 2 * inset, 2), ROW - 2 * inset);
      };
      outline(this.chosen, this.colour("mark"), 0);
      outline(this.list.find((one) => one.lives && one.birth === this.animation.cap), this.colour("cap"), 2);
      region.canvas.setAttribute("aria-label", `${region.label}: ${this.moment()}`);
    }

    // Where bytes of a region lie: x, y and width of each row that holds some.
    segments(region, offset, size, width) {
      const found = [];
      const end = offset + size - region.start;
      for (let at = offset - region.start; at < end;) {
        const row = Math.floor(at / this.across);
        const until = Math.min(end, (row + 1) * this.across);
        const x = ((at - row * this.across) / this.across) * width;
        found.push([x, row * (ROW + GAP) + 1, ((until - at) / this.across) * width]);
        at = until;
      }
      return found;
    }

    // Blocks too small to be drawn: each cell a bar of its shares, the kinds one above the other.
    drawCells(context, region, piece) {
      for (const [kind, frames] of Object.entries(this.animation.cells)) {
        const digits = frames[this.at];
        context.fillStyle = this.colour(kind);
        for (let cell = 0; cell < digits.length; cell++) {
          const share = (digits.charCodeAt(cell) - 48) / 9;
          const [from, to] = [cell, cell + 1].map((edge) => Math.floor((edge * this.animation.arena) / digits.length));
          const [start, end] = [Math.max(from, region.start), Math.min(to, region.end)];
          if (share === 0 || start >= end) continue;
          const below = this.below(cell, kind);
          for (const [x, y, wide] of piece(start, end - start)) context.fillRect(x, y + (1 - below - share) * ROW, wide, share * ROW);
        }
      }
    }

    below(cell, kind) {
      let sum = 0;
      for (const [other, frames] of Object.entries(this.animation.cells)) {
        if (other === kind) break;
        sum += (frames[this.at].charCodeAt(cell) - 48) / 9;
      }
      return Math.min(sum, 1);
    }

    markHoles(context, region, piece) {
      context.font = "10px system-ui, sans-serif";
      context.textBaseline = "middle";
      for (const [offset, size] of this.kept ? this.animation.frames.holes[this.at] : []) {
        if (offset < region.start || offset >= region.end) continue;
        const words = told(size);
        [context.strokeStyle, context.lineWidth] = [this.colour("mark"), 1];
        const parts = piece(offset, size);
        for (const [x, y, wide] of parts) if (wide > 2) context.strokeRect(x + 0.5, y + 0.5, wide - 1, ROW - 1);
        const widest = parts.reduce((one, other) => (other[2] > one[2] ? other : one));
        context.fillStyle = this.colour("mark");
        if (context.measureText(words).width + 6 < widest[2]) context.fillText(words, widest[0] + 4, widest[1] + ROW / 2 + 0.5);
      }
    }

    drawStrip() {
      const [context, width] = this.prepared(this.part("strip"), STRIP);
      const across = this.view.columns(this.heap.looks.event, Math.max(Math.round(width), 1));
      const [free, largest] = ["free", "largest"].map((key) => across.map((at) => this.heap.looks[key][at]));
      const most = free.reduce((one, other) => Math.max(one, other), 1);
      const y = (bytes) => STRIP - 2 - (bytes / most) * (STRIP - 16);
      context.fillStyle = this.colour("unused");
      context.fillRect(0, 0, width, STRIP);
      context.beginPath();
      context.moveTo(0, y(0));
      free.forEach((bytes, x) => context.lineTo(x + 0.5, y(bytes)));
      context.lineTo(width, y(0));
      context.fillStyle = this.colour("free");
      context.fill();
      [context.strokeStyle, context.lineWidth] = [this.colour("text"), 1];
      context.stroke();
      context.beginPath();
      largest.forEach((bytes, x) => context[x ? "lineTo" : "moveTo"](x + 0.5, y(bytes)));
      [context.strokeStyle, context.lineWidth] = [this.colour("long"), 2];
      context.stroke();
      context.fillStyle = this.colour("mark");
      context.fillRect(this.view.share(this.call) * width - 1, 0, 2, STRIP);
      context.font = "11px system-ui, sans-serif";
      context.textBaseline = "top";
      context.fillStyle = this.colour("text");
      context.fillText(`free memory, at most ${told(most)} bytes; in the strong line the largest hole`, 4, 0, width - 8);
      this.part("strip").setAttribute("aria-label", `Free memory over time, at most ${told(most)} bytes, and the largest hole, at most ${told(Math.max(...largest))}.`);
    }

    drawKey() {
      const present = new Set([...this.list.map((item) => item.kind), FREE]);
      const others = { [CACHED]: "In a quick list", [FREE]: "Free; a frame: a large hole", [OWN]: "The heap's own", [UNUSED]: "Never used yet" };
      const rows = Object.entries(this.by === "site" ? others : { ...LIFETIMES, ...others }).filter(([kind]) => present.has(Number(kind)) || this.animation.least).map(([kind, words]) => [KINDS[kind], words]);
      const { sites } = this.animation;
      if (this.by === "site") {
        rows.unshift(...sites.slice(0, SITES).map((name, at) => [`site-${at}`, name]));
        if (sites.length > SITES) rows.push([`site-${SITES}`, "Other sites"]);
      }
      if (this.list.some((item) => item.lives && item.birth === this.animation.cap)) rows.push(["cap", "What caps the arena"]);
      const key = rows.map(([name, words]) => {
        const [line, swatch] = [document.createElement("li"), document.createElement("i")];
        swatch.style.background = `var(--animation-${name})`;
        line.append(swatch, words);
        return line;
      });
      this.part("key").replaceChildren(...key);
    }
  }

  return HeapAnimation;
})();
