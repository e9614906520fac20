// The second part: draws the lines of the page, with the ruler above and the names on the left.

// --- the page: lines from top to bottom

function layout() {
  lines = [];
  height = 0;
  const put = (line, pixels, gap = 0) => { lines.push({ y: height, h: pixels, ...line }); height += pixels + gap; };
  head.groups.forEach((group, g) => {
    put({ group: g }, HEADING);
    if (folded.has(g)) return;
    const curves = counter => {
      for (const curve of head.curves) if (curve.group === g && curve.counter === counter) put({ curve, group: g }, CURVE, 3);
    };
    curves(false);
    for (const row of head.rows) if (row.group === g) row.lanes.forEach((lane, n) =>
      put({ lane, row, n, group: g }, LANE, n + 1 === row.lanes.length ? 3 : 1));
    curves(true);
  });
}
let theme;
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  theme = Object.fromEntries(["ground", "surface", "raised", "line", "text", "dim", "accent", "hit"]
    .map(name => [name, style.getPropertyValue(`--${name}`).trim()]));
}
const xOf = time => (time - view.from) * view.width / (view.to - view.from);
const timeOf = x => view.from + x * (view.to - view.from) / view.width;
const inkOn = paint => paint === head.pale ? theme.text : ((c => (c >> 16) * 3 + (c >> 8 & 255) * 6 + (c & 255))(head.colors[paint]) > 1250 ? "#111" : "#fff");
function write(text, x, y, room, ink) {  // shortened to its room
  if (room < 12) return;
  let width = draw.measureText(text).width;
  if (width > room) {
    text = text.slice(0, Math.max(0, Math.floor(text.length * room / width) - 1));
    if (text.length < 2) return;
    text += "…";
    width = room;
  }
  draw.fillStyle = ink;
  draw.fillText(text, x, y, room);
}
function nameOf(i) {
  if (isFold(i)) return counted(eventSum[i + 1] - eventSum[i], "event");
  const f = fieldsOf(i), unit = head.looks.unit[f], operation = head.looks.operation[f];
  if (operation < 0) return head.names[head.looks.name[f]];
  return head.operations[operation] + (unit < 0 ? "" : ` ${head.units[unit]}`);
}

function paintLane(line, y) {
  const h = line.h, hits = found && found.hits.get(line.lane);
  draw.globalAlpha = found ? 0.3 : 1;
  let ink = "";
  const inked = wanted => { if (wanted !== ink) draw.fillStyle = ink = wanted; };  // parsing a colour is slow
  const strip = (x0, width, first, last, share) => {  // its height is the share of the time that is busy
    const tall = Math.max(share > 0 ? 1 : 2, Math.min(1, share) * h);
    inked(color(mostOf(first, last)));
    draw.fillRect(x0, y + h - tall, width, tall);
  };
  const labels = [];
  foldLane(line.lane, i => {
    const x0 = Math.max(-1, xOf(start[i])), x1 = Math.min(view.width + 1, xOf(end[i])), paint = paintOf(i);
    if (isFold(i)) {
      inked(theme.line);
      draw.fillRect(x0, y, x1 - x0, h);
      strip(x0, x1 - x0, i, i + 1, (busySum[i + 1] - busySum[i]) / (end[i] - start[i]));
    } else {
      inked(color(paint));
      draw.fillRect(x0, y, Math.max(1, x1 - x0 - (x1 - x0 > 4 ? 1 : 0)), h);
    }
    if (x1 - x0 > 24) labels.push([i, Math.max(0, x0), x1, isFold(i) ? theme.text : inkOn(paint)]);
  }, (x, first, last, busy) => strip(x, 1, first, last, busy * view.width / (view.to - view.from)));
  for (const [i, x0, x1, ink] of labels) write(nameOf(i), x0 + 3, y + h / 2, x1 - x0 - 6, ink);
  draw.globalAlpha = 1;
  if (hits) {
    let free = -1;
    const startOf = k => start[hits[k]];
    let k = 0;
    for (let a = 0, b = hits.length; a < b; k = a) {
      const m = (a + b) >> 1;
      if (end[hits[m]] < view.from) a = m + 1; else b = m;
    }
    for (; k < hits.length && startOf(k) < view.to; ++k) {
      const x0 = xOf(start[hits[k]]), x1 = Math.max(x0 + 1, xOf(end[hits[k]]));
      if (x1 <= free) continue;
      draw.fillStyle = color(paintOf(hits[k]));
      draw.fillRect(x0, y, Math.max(1, x1 - x0), h);
      draw.fillStyle = theme.hit;
      draw.fillRect(x0, y + h - 3, Math.max(1, x1 - x0), 3);
      if (x1 - x0 > 24) write(nameOf(hits[k]), Math.max(0, x0) + 3, y + h / 2, x1 - Math.max(0, x0) - 6, inkOn(paintOf(hits[k])));
      free = Math.ceil(x1);
    }
  }
  if (picked !== null && picked >= line.lane.first && picked < line.lane.last) {
    draw.strokeStyle = theme.text;
    draw.lineWidth = 2;
    const x0 = Math.max(-4, xOf(start[picked])), x1 = Math.min(view.width + 4, xOf(end[picked]));
    draw.strokeRect(x0, y, Math.max(2, x1 - x0), h);
  }
}

// The lowest and the highest value of a curve in [from, to): each value applies until the next.
function extremes(curve, from, to) {
  let i = firstFrom(curve.times, 0, curve.times.length, from);
  if (i === curve.times.length || curve.times[i] > from) --i;
  let low = Infinity, high = -Infinity;
  for (; i < curve.times.length && (i < 0 || curve.times[i] < to); ++i) {
    if (i < 0) { if (!curve.counter) low = high = 0; continue; }
    low = Math.min(low, curve.lowest[i]);
    high = Math.max(high, curve.highest[i]);
  }
  return high < low ? null : { low, high };
}
function paintCurve(line, y) {
  const { curve, h } = line, range = curve.most - curve.least || 1;
  const tall = value => (value - curve.least) / range * (h - 2);
  draw.fillStyle = theme.surface;
  draw.fillRect(0, y, view.width, h);
  draw.fillStyle = theme.accent;
  for (let x = 0; x < view.width; ++x) {
    const at = extremes(curve, timeOf(x), Math.min(timeOf(x + 1), head.to));
    if (!at) continue;
    draw.globalAlpha = 0.45;  // some of the time
    draw.fillRect(x, y + h - tall(at.high), 1, Math.max(1, tall(at.high) - tall(at.low)));
    draw.globalAlpha = 0.9;
    draw.fillRect(x, y + h - tall(at.low), 1, tall(at.low));
  }
  draw.globalAlpha = 1;
}

function paintRuler() {
  draw.fillStyle = theme.raised;
  draw.fillRect(0, 0, canvas.clientWidth, RULER);
  draw.save();
  draw.translate(NAMES, 0);
  draw.beginPath();
  draw.rect(0, 0, view.width, canvas.clientHeight);
  draw.clip();
  const least = (view.to - view.from) / Math.max(2, view.width / 110), power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, [1, 2, 5, 10].map(m => m * power).find(s => s >= least));
  const unit = step < 1e3 ? [1e3, "µs", 3] : step < 1e9 ? [1e6, "ms", 3] : [1e9, "s", 3];
  for (let n = Math.ceil(view.from / step); n * step < view.to; ++n) {
    const tick = n * step;
    const x = Math.floor(xOf(tick));
    draw.fillStyle = theme.line;
    draw.fillRect(x, 16, 1, canvas.clientHeight);
    const label = `${(tick / unit[0]).toLocaleString("en-US", { maximumFractionDigits: unit[2] })} ${unit[1]}`;
    draw.fillStyle = theme.dim;
    if (x + 3 + draw.measureText(label).width < view.width) draw.fillText(label, x + 3, 9);
  }
  const steps = head.groups[rank].steps;
  for (let s = 0, free = -1; s < steps.number.length; ++s) {
    const x0 = Math.max(0, xOf(steps.start[s])), x1 = Math.min(view.width, xOf(steps.end[s]));
    if (x1 < 0 || x0 > view.width || x1 < free + 0.5) continue;
    draw.fillStyle = theme.dim;
    draw.fillRect(Math.max(x0, free), 19, Math.max(1, x1 - Math.max(x0, free) - 1), 17);
    free = x1;
    const room = x1 - x0 - 8, texts = [`step ${steps.number[s]}  ${duration(steps.end[s] - steps.start[s])}`, `step ${steps.number[s]}`];
    write(texts.find(text => draw.measureText(text).width <= room) || `${steps.number[s]}`, x0 + 4, 28, room, theme.ground);
  }
  draw.restore();
  draw.fillStyle = theme.dim;
  draw.fillText("Time since start", 8, 9);
  if (steps.number.length) write(`Host steps, ${head.groups[rank].label}`, 8, 28, NAMES - 16, theme.dim);
}

function paint() {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth, tall = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(tall * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(tall * ratio);
  }
  draw.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw.font = "12px system-ui, sans-serif";
  draw.textBaseline = "middle";
  view.width = Math.max(50, width - NAMES);
  scroll = Math.max(0, Math.min(scroll, height + RULER - tall));
  draw.fillStyle = theme.ground;
  draw.fillRect(0, 0, width, tall);
  paintRuler();
  draw.save();
  draw.beginPath();
  draw.rect(0, RULER, width, tall - RULER);
  draw.clip();
  for (const line of lines) {
    const y = line.y - scroll + RULER;
    if (y > tall || y + line.h < RULER) continue;
    if (!line.lane && !line.curve) {
      const group = head.groups[line.group];
      draw.fillStyle = theme.surface;
      draw.fillRect(0, y, width, line.h - 1);
      write(`${folded.has(line.group) ? "▸" : "▾"} ${group.label}`, 8, y + line.h / 2, NAMES - 16, theme.text);
      write(group.note, NAMES + 4, y + line.h / 2, view.width - 8, theme.dim);
      continue;
    }
    if (!line.n) write(line.curve ? line.curve.label : line.row.label, 20, y + (line.curve ? 11 : line.h / 2), NAMES - 26, theme.text);
    if (line.curve) write(`up to ${amount(line.curve, line.curve.most)}`, 20, y + 27, NAMES - 26, theme.dim);
    draw.save();
    draw.translate(NAMES, 0);
    draw.beginPath();
    draw.rect(0, RULER, view.width, tall);
    draw.clip();
    if (line.curve) paintCurve(line, y); else paintLane(line, y);
    draw.restore();
  }
  draw.restore();
  canvas.dataset.from = view.from;
  canvas.dataset.to = view.to;
  $("span").textContent = `${instant(view.from)} to ${instant(view.to)}, ${duration(view.to - view.from)}`;
}
let wanted = 0;
const repaint = () => { wanted ||= requestAnimationFrame(() => { wanted = 0; paint(); showTip(); }); };
