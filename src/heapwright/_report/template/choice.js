// What a plot of recipes over two metrics shows, worked out in numbers alone: its front, its axes, where names stand.

const LOG_SPREAD = 4; // from this ratio of the largest to the smallest value on an axis is logarithmic
const MARGIN = 24; // pixels between the outermost points and the edge of a plot
const NEAR = 8; // pixels from a point to its name
const FAR = 20;

// The recipes that no other beats in both metrics, best in x first; of equal ones the one with the lowest id.
function frontOf(recipes, x, y, metrics) {
  const [worseRight, worseUp] = [x, y].map((key) => (metrics[key].direction === "min" ? 1 : -1));
  const known = recipes.filter((one) => x in one.metrics && y in one.metrics);
  known.sort(
    (one, other) =>
      worseRight * (one.metrics[x] - other.metrics[x]) ||
      worseUp * (one.metrics[y] - other.metrics[y]) ||
      (one.id < other.id ? -1 : 1),
  );
  let best = Infinity;
  return known.filter((one) => {
    const value = worseUp * one.metrics[y];
    if (value >= best) return false;
    best = value;
    return true;
  });
}

// An axis from pixel `from` to pixel `to` that shows all these values, logarithmic where they spread.
function axisOf(values, from, to) {
  let [low, high] = [Math.min(...values), Math.max(...values)];
  const log = low > 0 && high / low >= LOG_SPREAD;
  if (low === high) [low, high] = low ? [low - Math.abs(low) / 10, high + Math.abs(high) / 10] : [-1, 1];
  const [turn, back] = log ? [Math.log, Math.exp] : [Number, Number];
  const inner = Math.sign(to - from) * MARGIN;
  const stretch = (to - from - 2 * inner) / (turn(high) - turn(low));
  const at = (value) => from + inner + (turn(value) - turn(low)) * stretch;
  const value = (pixel) => back(turn(low) + (pixel - from - inner) / stretch);
  return { log, at, low: value(from), high: value(to), holds: (one) => one >= low && one <= high };
}

// Values worth writing on an axis: powers of ten and what lies between where there are too few, round steps otherwise.
function ticksOf({ low, high, log }) {
  for (const steps of log ? [[1], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]] : []) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
      found.push(...steps.map((step) => Number(`${step}e${power}`)).filter((one) => one >= low && one <= high));
    if (found.length >= 3) return found;
  }
  const power = 10 ** Math.floor(Math.log10((high - low) / 6));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= (high - low) / 6);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high; at++) found.push(at * step);
  return found;
}

// A number with the prefix that fits it: 1.5k, 132k, 10M.
function short(value) {
  const [unit, size] = [["G", 1e9], ["M", 1e6], ["k", 1e3]].find(([, one]) => Math.abs(value) >= one) ?? ["", 1];
  return `${Number((value / size).toPrecision(6))}${unit}`;
}

function distance(box, point) {
  const across = Math.max(box.left - point.x, 0, point.x - box.right);
  return Math.hypot(across, Math.max(box.top - point.y, 0, point.y - box.bottom));
}

function overlap(box, other) {
  return box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom;
}

// Boxes for names, each next to its point and nearer to it than to any other; null if there is no room.
// `wanted`: {point, width, height} in the order of their weight; `points`: all that are drawn; `taken`: boxes to avoid.
function placeNames(wanted, points, within, taken) {
  const full = [...taken];
  return wanted.map(({ point, width, height }) => {
    // Points that all but coincide may be as near; no other may be nearly so.
    const others = points.map((other) => ({ ...other, apart: Math.min(1, Math.hypot(other.x - point.x, other.y - point.y) / 2) }));
    const found = candidates(point, width, height).find((box) => {
      const inside = box.left >= within.left && box.right <= within.right && box.top >= within.top && box.bottom <= within.bottom;
      const own = distance(box, point);
      return inside && !full.some((other) => overlap(box, other)) && others.every((other) => distance(box, other) >= own + other.apart);
    });
    if (found) full.push(found);
    return found ?? null;
  });
}

function candidates({ x, y }, width, height) {
  const box = (left, top) => ({ left, top, right: left + width, bottom: top + height });
  const found = [];
  for (const gap of [NEAR, FAR]) {
    const [middle, centre, slant] = [y - height / 2, x - width / 2, gap * 0.7];
    found.push(box(x + gap, middle), box(x - gap - width, middle), box(centre, y - gap - height), box(centre, y + gap));
    for (const up of [y - slant - height, y + slant]) found.push(box(x + slant, up), box(x - slant - width, up));
  }
  return found;
}

// The largest box of these shares of a plot that keeps away from all points, the upper right first; null where none does.
function emptyBox(points, { left, top, right, bottom }, shares, edge) {
  const steps = Array.from({ length: 21 }, (_, at) => at / 20);
  for (const share of shares) {
    const [width, height] = [(right - left) * share, (bottom - top) * share];
    const [across, down] = [right - left - width - 2 * edge, bottom - top - height - 2 * edge];
    for (const x of steps)
      for (const y of steps) {
        const corner = { left: right - edge - width - x * across, top: top + edge + y * down };
        const box = { ...corner, right: corner.left + width, bottom: corner.top + height };
        if (points.every((point) => distance(box, point) >= NEAR)) return box;
      }
  }
  return null;
}
