// What part of a trace is in view, and across what: one for all plots and animations of the trace.

const LEAST_VIEW = 16; // moments that the plots know of: closer, a view would show nothing new
const PAN = 0.25; // share of the view
const FACTOR = 4;
const DRAG = 5; // pixels from which a press is no click any more

// Differences from one to the next, added up again.
function summed(differences) {
  let sum = 0;
  return differences.map((one) => (sum += one));
}

// The place of the last of rising values that is not above one, 0 where all are.
function lastUpTo(values, wanted) {
  let [low, high] = [0, values.length];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (values[middle] <= wanted) low = middle;
    else high = middle;
  }
  return low;
}

// A value on an axis whose ticks are `step` apart, in the unit for the largest, with the digits that the step has.
function tickText(value, step, most) {
  const [unit, size] = [["M", 1e6], ["k", 1e3]].find(([, one]) => most >= 10 * one) ?? ["", 1];
  const digits = Math.max(0, 1 - Math.floor(Math.log10(step / size)));
  return `${(value / size).toLocaleString("en", { maximumFractionDigits: digits })}${value ? unit : ""}`;
}

// From call `from` to call `to`; `moment` is the call that animations show, null for each where its arena is fullest.
class View {
  // `samples`: calls, and the microseconds at which they were made, or null.
  constructor(trace, calls, samples, address) {
    Object.assign(this, { trace, calls, samples, address, followers: [], from: 0, to: calls - 1, moment: null, byTime: false });
    const known = Math.ceil((calls / samples.call.length) * LEAST_VIEW);
    this.least = Math.min(calls - 1, Math.max(known, LEAST_VIEW));
  }

  get whole() {
    return this.from === 0 && this.to === this.calls - 1;
  }

  get timed() {
    return Boolean(this.samples.time);
  }

  // `follower`: called after each change with whether more than the moment is another one.
  follow(follower) {
    this.followers.push(follower);
  }

  tell(turned) {
    for (const follower of this.followers) follower(turned);
  }

  timeOf(call) {
    return this.between(this.samples.call, this.samples.time, call);
  }

  callOf(time) {
    return this.between(this.samples.time, this.samples.call, time);
  }

  between(known, wanted, value) {
    const at = Math.min(lastUpTo(known, value), known.length - 2);
    if (at < 0) return wanted[0];
    const step = known[at + 1] - known[at];
    return wanted[at] + (step ? Math.min((value - known[at]) / step, 1) * (wanted[at + 1] - wanted[at]) : 0);
  }

  // The ends of the axis: calls, or seconds.
  get ends() {
    const found = this.byTime ? [this.from, this.to].map((call) => this.timeOf(call) / 1e6) : [this.from, this.to];
    return found[0] < found[1] ? found : [found[0], found[0] + 1];
  }

  // Where a call stands across the view, 0 to 1.
  share(call) {
    const [low, high] = this.ends;
    return ((this.byTime ? this.timeOf(call) / 1e6 : call) - low) / (high - low);
  }

  callAt(share) {
    const [low, high] = this.ends;
    const value = low + Math.min(Math.max(share, 0), 1) * (high - low);
    const call = this.byTime ? this.callOf(value * 1e6) : value;
    return Math.round(Math.min(Math.max(call, this.from), this.to));
  }

  // Of each pixel across a plot, the place of the last of rising calls that is not after it.
  columns(calls, width) {
    return Array.from({ length: width }, (_, x) => lastUpTo(calls, this.callAt((x + 0.5) / width)));
  }

  show(from, to) {
    const span = Math.min(Math.max(Math.round(to - from), this.least), this.calls - 1);
    this.from = Math.round(Math.min(Math.max((from + to - span) / 2, 0), this.calls - 1 - span));
    this.to = this.from + span;
    this.hold();
    this.tell(true);
    this.put();
  }

  // The moment stays in view.
  hold() {
    if (this.moment !== null) this.moment = Math.min(Math.max(this.moment, this.from), this.to);
  }

  // About the moment, so that what is looked at stays where it is.
  zoom(factor) {
    const about = this.moment ?? (this.from + this.to) / 2;
    this.show(about - (about - this.from) / factor, about + (this.to - about) / factor);
  }

  pan(share) {
    const step = Math.round((this.to - this.from) * share);
    const held = Math.min(Math.max(step, -this.from), this.calls - 1 - this.to);
    if (held) this.show(this.from + held, this.to + held);
  }

  showAll() {
    this.show(0, this.calls - 1);
  }

  across(byTime) {
    this.byTime = byTime && this.timed;
    this.tell(true);
    this.put();
  }

  // Go to a moment; the address has it once the reader stays there.
  goTo(call, stays = true) {
    this.moment = call;
    this.tell(false);
    if (stays) this.put({ moment: call });
  }

  key(what) {
    return `${what}-${this.trace}`;
  }

  put({ moment = null } = {}) {
    const changes = { [this.key("view")]: this.whole ? null : `${this.from}-${this.to}`, [this.key("across")]: this.byTime ? "time" : null };
    this.address.put(moment === null ? changes : { ...changes, [this.key("call")]: moment });
  }

  // Show what the address says.
  read() {
    const { chosen } = this.address.read();
    const [from, to] = /^(\d+)-(\d+)$/.exec(chosen.get(this.key("view")))?.slice(1).map(Number) ?? [0, this.calls - 1];
    const call = Number(chosen.get(this.key("call")) ?? NaN);
    this.byTime = this.timed && chosen.get(this.key("across")) === "time";
    if (from < to && to < this.calls) [this.from, this.to] = [from, to];
    if (call >= 0 && call < this.calls) this.moment = call;
    this.hold();
    this.tell(true);
  }

  words() {
    const told = (value) => value.toLocaleString("en");
    const range = this.whole ? `All ${told(this.calls)} calls` : `Calls ${told(this.from)} to ${told(this.to)} of ${told(this.calls)}`;
    if (!this.timed) return `${range}.`;
    const seconds = [this.from, this.to].map((call) => Number((this.timeOf(call) / 1e6).toPrecision(6)).toLocaleString("en", { maximumSignificantDigits: 6 }));
    return `${range}, ${seconds[0]} to ${seconds[1]} s.`;
  }
}

// Lets a reader drag over a part of a plot to see it larger, click on a moment, and do the same by keys.
// `inside`: the rectangle across which calls run; `clicked`: called with the event and the call there.
function brush(place, view, inside, clicked) {
  const mark = Object.assign(document.createElement("div"), { className: "brush", hidden: true });
  let begin = null;
  const shareOf = (event) => {
    const { left, width } = inside();
    return Math.min(Math.max((event.clientX - left) / width, 0), 1);
  };
  const ends = (event) => [begin, event].map(shareOf).sort((one, other) => one - other);
  const dragged = (event) => begin && Math.abs(event.clientX - begin.clientX) >= DRAG;
  place.classList.add("brushed");
  place.addEventListener("pointerdown", (event) => {
    const { top, height } = inside();
    if (event.button !== 0 || event.clientY < top || event.clientY > top + height) return;
    begin = event;
    place.setPointerCapture(event.pointerId);
  });
  place.addEventListener("pointermove", (event) => {
    mark.hidden = !dragged(event);
    if (mark.hidden) return;
    const [{ left, top, width, height }, [from, to], around] = [inside(), ends(event), place.getBoundingClientRect()];
    const spot = { left: left - around.left + from * width, top: top - around.top, width: (to - from) * width, height };
    for (const [key, pixels] of Object.entries(spot)) mark.style[key] = `${pixels}px`;
    place.append(mark);
  });
  place.addEventListener("pointerup", (event) => {
    if (dragged(event)) view.show(...ends(event).map((share) => view.callAt(share)));
    else if (begin) clicked(event, view.callAt(shareOf(event)));
    begin = null;
    mark.remove();
  });
  place.addEventListener("pointercancel", () => {
    begin = null;
    mark.remove();
  });
  const keys = {
    "+": () => view.zoom(FACTOR),
    "=": () => view.zoom(FACTOR),
    "-": () => view.zoom(1 / FACTOR),
    ArrowLeft: () => view.pan(-PAN),
    ArrowRight: () => view.pan(PAN),
    0: () => view.showAll(),
    Escape: () => view.showAll(),
  };
  place.setAttribute("aria-keyshortcuts", "+ - ArrowLeft ArrowRight 0");
  place.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
}

// The buttons above the plots of a trace.
function steer(bar, view) {
  const part = (name) => bar.querySelector(`.${name}`);
  part("in").addEventListener("click", () => view.zoom(FACTOR));
  part("out").addEventListener("click", () => view.zoom(1 / FACTOR));
  part("back").addEventListener("click", () => view.pan(-PAN));
  part("on").addEventListener("click", () => view.pan(PAN));
  part("all").addEventListener("click", () => view.showAll());
  part("by").hidden = !view.timed;
  part("across").addEventListener("change", () => view.across(part("across").value === "time"));
  const tell = () => {
    part("across").value = view.byTime ? "time" : "calls";
    part("range").textContent = view.words();
  };
  view.follow((turned) => turned && tell());
  tell();
}
