const drawFilms = (() => {
  "use strict";

  const KINDS = ["static", "long", "short", "cached", "free", "own", "unused"];
  const [STATIC, LONG, SHORT, CACHED, FREE, OWN, UNUSED] = [...KINDS.keys()];
  const LIFETIMES = { [STATIC]: "Static: never freed", [LONG]: "Long-lived", [SHORT]: "Short-lived" };
  const WORDS = ["static", "long", "short", "in a quick list", "free", "the heap's own", "never used yet"];
  const SITES = 8;
  const ROWS = { wide: 24, narrow: 44 };
  const [ROW, GAP, STRIP] = [13, 2, 72];
  const PACE = 100; // milliseconds from one moment to the next

  const told = (value) => value.toLocaleString("en");

  function unpacked(film) {
    const { blocks, frames } = film;
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

  class Film {
    // `moved`: called with the call that is shown; `settled`: with the one at which the reader stays.
    constructor(figure, film, moved, settled) {
      Object.assign(this, { figure, film, moved, settled });
      this.blocks = unpacked(film);
      this.part = (name) => figure.querySelector(`.${name}`);
      this.part("stage").hidden = false;
      this.regions = film.regions.map((region) => this.addRegion(region));
      this.time = this.part("time");
      this.time.max = film.frames.call.length - 1;
      this.chooser = this.part("block");
      this.by = "life";
      this.part("by").hidden = film.sites.length === 0;
      this.time.addEventListener("input", () => this.show(Number(this.time.value)));
      this.chooser.addEventListener("input", () => this.choose(Number(this.chooser.value)));
      this.time.addEventListener("change", () => this.settle());
      this.part("play").addEventListener("click", () => (this.playing ? this.stop() : this.play()));
      this.part("fullest").addEventListener("click", () => {
        this.show(film.peak, film.cap);
        this.settle();
      });
      this.part("strip").addEventListener("pointerdown", (event) => this.seek(event));
      this.part("strip").addEventListener("pointermove", (event) => event.buttons && this.seek(event));
      this.part("strip").addEventListener("pointerup", () => this.settle());
      for (const one of figure.querySelectorAll("input[type=radio]")) one.addEventListener("change", () => { this.by = one.value; this.draw(); });
      new ResizeObserver(() => this.draw()).observe(this.part("stage"));
      for (const medium of ["(prefers-color-scheme: dark)", "print"]) matchMedia(medium).addEventListener("change", () => this.draw());
      this.show(film.peak, film.cap, false);
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

    seek(event) {
      const box = event.currentTarget.getBoundingClientRect();
      const share = (event.clientX - box.left) / box.width;
      this.show(Math.round(Math.min(Math.max(share, 0), 1) * Number(this.time.max)));
    }

    settle() {
      if (!this.playing) this.settled(this.film.frames.call[this.at]);
    }

    // Go to the last moment that is not after a call.
    goTo(call) {
      const after = this.film.frames.call.findIndex((one) => one > call);
      const at = after < 0 ? Number(this.time.max) : Math.max(after - 1, 0);
      if (at !== this.at) this.show(at, undefined, false);
    }

    // From here to the end, or from the begin where this is the end.
    play() {
      if (this.at >= Number(this.time.max)) this.show(0);
      this.part("play").textContent = "Pause";
      this.playing = setInterval(() => (this.at < Number(this.time.max) ? this.show(this.at + 1) : this.stop()), PACE);
    }

    stop() {
      clearInterval(this.playing);
      this.playing = null;
      this.part("play").textContent = "Play";
      this.settle();
    }

    // The items of a frame in the order of addresses: blocks, holes, and what was never used.
    items(at) {
      const blocks = this.blocks.filter((block) => block.first <= at && at <= block.last).sort((one, other) => one.offset - other.offset);
      if (this.film.least) {
        const holes = this.film.frames.holes[at].map(([offset, size]) => ({ offset, size, kind: FREE }));
        return [...blocks, ...holes].sort((one, other) => one.offset - other.offset);
      }
      const found = [];
      for (const region of this.film.regions) {
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
      const [low, high] = [this.film.frames.low[at], this.film.frames.high[at]];
      const parts = [[start, Math.min(end, low), FREE], [Math.max(start, low), Math.min(end, high), UNUSED], [Math.max(start, high, low), end, FREE]];
      return parts.filter(([from, to]) => from < to).map(([offset, to, kind]) => ({ offset, size: to - offset, kind }));
    }

    // Shows a frame; the block chosen stays the one that was born at `birth`, else what lies at the same address.
    show(at, birth, tell = true) {
      const before = this.chosen;
      this.at = at;
      this.list = this.items(at);
      this.time.value = at;
      this.chooser.max = Math.max(this.list.length - 1, 0);
      const words = this.moment();
      this.part("moment").textContent = words;
      this.time.setAttribute("aria-valuetext", words);
      const wanted = birth ?? (before && before.lives ? before.birth : null);
      let next = wanted === null ? -1 : this.list.findIndex((one) => one.lives && one.birth === wanted);
      if (next < 0) next = Math.max(this.list.findIndex((one) => before && one.offset + one.size > before.offset), 0);
      this.figure.dataset.call = this.film.frames.call[at];
      this.figure.dataset.items = this.list.length;
      this.choose(next);
      if (tell) this.moved(this.film.frames.call[at]);
    }

    moment() {
      const { frames, calls } = this.film;
      const of = (key) => told(frames[key][this.at]);
      return `After call ${of("call")} of ${told(calls)}: ${of("live")} bytes live in ${of("objects")} objects, ${of("free")} bytes free in ${of("count")} holes, the largest of ${of("largest")}.`;
    }

    choose(index) {
      this.chosen = this.list[index];
      this.chooser.value = index;
      const words = this.describe(this.chosen);
      this.chooser.setAttribute("aria-valuetext", words);
      this.part("told").textContent = words;
      this.draw();
    }

    describe(item) {
      if (!item) return "Nothing lies here.";
      const where = `at address ${told(item.offset)}`;
      if (item.lives) {
        const age = `age ${told(this.film.frames.call[this.at] - item.birth)} calls`;
        const until = item.death === null ? `made by call ${told(item.birth)}, never freed` : `calls ${told(item.birth)} to ${told(item.death)}`;
        const site = this.film.sites.length ? `; site: ${this.film.sites[item.site] ?? "one of many smaller ones"}` : "";
        return `Object ${item.id}: ${told(item.requested)} bytes in a block of ${told(item.size)} ${where}; ${WORDS[item.kind]}, ${until}, ${age}${site}.`;
      }
      const size = `${told(item.size)} bytes ${where}`;
      return { [FREE]: `Hole of ${size}.`, [CACHED]: `Block of ${size}, kept in a quick list.`, [OWN]: `The heap's own data: ${size}.`, [UNUSED]: `Never used yet: ${size}.` }[item.kind];
    }

    hover(region, event) {
      const box = region.canvas.getBoundingClientRect();
      const row = Math.floor((event.clientY - box.top - 1) / (ROW + GAP));
      const address = region.start + Math.floor((row + Math.min(Math.max((event.clientX - box.left) / box.width, 0), 0.9999)) * this.across);
      const index = this.list.findIndex((one) => one.offset <= address && address < one.offset + one.size);
      if (index >= 0) {
        if (this.list[index] !== this.chosen) this.choose(index);
      } else if (this.film.least) {
        this.part("told").textContent = this.describeCell(address);
      }
    }

    describeCell(address) {
      const cells = this.film.cells;
      const count = Object.values(cells)[0][this.at].length;
      const cell = Math.min(Math.floor((address / this.film.arena) * count), count - 1);
      const shares = Object.entries(cells).map(([kind, frames]) => [kind, (frames[this.at].charCodeAt(cell) - 48) / 9]);
      const used = shares.reduce((sum, [, share]) => sum + share, 0);
      const words = [...shares, ["free", Math.max(1 - used, 0)]].filter(([, share]) => share > 0.05).map(([kind, share]) => `${Math.round(share * 100)} % ${WORDS[KINDS.indexOf(kind)]}`);
      return `Around address ${told(address)}, in blocks below ${told(this.film.least)} bytes: about ${words.join(", ")}.`;
    }

    colour(name) {
      return this.style.getPropertyValue(`--film-${name}`).trim();
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
      this.across = Math.ceil(this.film.arena / (this.figure.clientWidth < 600 ? ROWS.narrow : ROWS.wide));
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
      if (this.film.least) this.drawCells(context, region, piece);
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
      outline(this.list.find((one) => one.lives && one.birth === this.film.cap), this.colour("cap"), 2);
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

    // What is too small to be told: each cell a bar of its shares, the kinds one above the other.
    drawCells(context, region, piece) {
      for (const [kind, frames] of Object.entries(this.film.cells)) {
        const digits = frames[this.at];
        context.fillStyle = this.colour(kind);
        for (let cell = 0; cell < digits.length; cell++) {
          const share = (digits.charCodeAt(cell) - 48) / 9;
          const [from, to] = [cell, cell + 1].map((edge) => Math.floor((edge * this.film.arena) / digits.length));
          const [start, end] = [Math.max(from, region.start), Math.min(to, region.end)];
          if (share === 0 || start >= end) continue;
          const below = this.below(cell, kind);
          for (const [x, y, wide] of piece(start, end - start)) context.fillRect(x, y + (1 - below - share) * ROW, wide, share * ROW);
        }
      }
    }

    below(cell, kind) {
      let sum = 0;
      for (const [other, frames] of Object.entries(this.film.cells)) {
        if (other === kind) break;
        sum += (frames[this.at].charCodeAt(cell) - 48) / 9;
      }
      return Math.min(sum, 1);
    }

    markHoles(context, region, piece) {
      context.font = "10px system-ui, sans-serif";
      context.textBaseline = "middle";
      for (const [offset, size] of this.film.frames.holes[this.at]) {
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
      const { free, largest } = this.film.frames;
      const [context, width] = this.prepared(this.part("strip"), STRIP);
      const [last, most] = [Math.max(free.length - 1, 1), Math.max(...free, 1)];
      const x = (at) => (at / last) * (width - 2) + 1;
      const y = (bytes) => STRIP - 2 - (bytes / most) * (STRIP - 16);
      context.fillStyle = this.colour("unused");
      context.fillRect(0, 0, width, STRIP);
      context.beginPath();
      context.moveTo(x(0), y(0));
      free.forEach((bytes, at) => context.lineTo(x(at), y(bytes)));
      context.lineTo(x(last), y(0));
      context.fillStyle = this.colour("free");
      context.fill();
      [context.strokeStyle, context.lineWidth] = [this.colour("text"), 1];
      context.stroke();
      context.beginPath();
      largest.forEach((bytes, at) => context[at ? "lineTo" : "moveTo"](x(at), y(bytes)));
      [context.strokeStyle, context.lineWidth] = [this.colour("long"), 2];
      context.stroke();
      context.fillStyle = this.colour("mark");
      context.fillRect(x(this.at) - 1, 0, 2, STRIP);
      context.font = "11px system-ui, sans-serif";
      context.textBaseline = "top";
      context.fillStyle = this.colour("text");
      context.fillText(`free memory, at most ${told(most)} bytes; in the strong line the largest hole`, 4, 0, width - 8);
      this.part("strip").setAttribute("aria-label", `Free memory over time, at most ${told(most)} bytes, and the largest hole, at most ${told(Math.max(...largest))}.`);
    }

    drawKey() {
      const present = new Set([...this.list.map((item) => item.kind), FREE]);
      const others = { [CACHED]: "In a quick list", [FREE]: "Free; a frame: a large hole", [OWN]: "The heap's own", [UNUSED]: "Never used yet" };
      const rows = Object.entries(this.by === "site" ? others : { ...LIFETIMES, ...others }).filter(([kind]) => present.has(Number(kind)) || this.film.least).map(([kind, words]) => [KINDS[kind], words]);
      const { sites } = this.film;
      if (this.by === "site") {
        rows.unshift(...sites.slice(0, SITES).map((name, at) => [`site-${at}`, name]));
        if (sites.length > SITES) rows.push([`site-${SITES}`, "Other sites"]);
      }
      if (this.list.some((item) => item.lives && item.birth === this.film.cap)) rows.push(["cap", "What caps the arena"]);
      const key = rows.map(([name, words]) => {
        const [line, swatch] = [document.createElement("li"), document.createElement("i")];
        swatch.style.background = `var(--film-${name})`;
        line.append(swatch, words);
        return line;
      });
      this.part("key").replaceChildren(...key);
    }
  }

  // Films of one trace show one moment, and the address has it.
  return (films, address) => {
    const [shown, key] = [[], (film) => `call-${film.trace}`];
    const add = (name, film) => {
      const moved = (call) => {
        for (const other of shown) if (other.film !== film && other.film.trace === film.trace) other.goTo(call);
      };
      shown.push(new Film(document.getElementById(name), film, moved, (call) => address.put({ [key(film)]: call })));
    };
    for (const [name, film] of Object.entries(films)) add(name, film);
    const goTo = () => {
      const { chosen } = address.read();
      for (const one of shown) if (chosen.has(key(one.film))) one.goTo(Number(chosen.get(key(one.film))));
    };
    addEventListener("hashchange", goTo);
    goTo();
  };
})();
