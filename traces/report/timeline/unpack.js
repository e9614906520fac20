// The script of the HTML timeline, first of three parts: unpacks the page's data (data.h says what they are) and folds
// the items of a lane to pixels. Times in nanoseconds. Names of the trace only ever become text: textContent, or text
// of the canvas.
"use strict";
const $ = id => document.getElementById(id);
const BLOCK = 64, NAMES = 190, RULER = 40, LANE = 16, CURVE = 40, HEADING = 22;
let head, start, end, look, busySum, eventSum, longest, paintSum;  // of all items, in the order of the rows
let lines = [], view, rank = 0, scroll = 0, height = 0, picked = null, found = null, mouse = null, drag = null;
const folded = new Set();  // groups whose rows are not shown
const canvas = $("rows"), draw = canvas.getContext("2d");

// --- numbers

const grouped = n => Math.round(n).toLocaleString("en-US");
function decimals(v) {
  return v.toLocaleString("en-US", { maximumFractionDigits: v >= 999.5 ? 0 : v >= 99.95 ? 1 : 2 });
}
function duration(ns) {
  if (ns < 999.5) return `${+ns.toFixed(ns < 10 && ns % 1 ? 1 : 0)} ns`;
  if (ns < 999.95e3) return `${decimals(ns / 1e3)} µs`;
  return ns < 999.95e6 ? `${decimals(ns / 1e6)} ms` : `${decimals(ns / 1e9)} s`;
}
const exact = ns => ns < 1000 ? duration(ns) : `${duration(ns)} (${grouped(ns)} ns)`;
const instant = ns => `${(ns / 1e6).toLocaleString("en-US", { minimumFractionDigits: 6 })} ms`;
function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; Math.abs(bytes) >= 1023.95 && unit < 4; ++unit) bytes /= 1024;
  return `${bytes.toLocaleString("en-US", { maximumFractionDigits: unit ? 1 : 0 })} ${units[unit]}`;
}
function rate(bytes) {
  const units = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
  let unit = 0;
  for (; Math.abs(bytes) >= 999.995 && unit < 4; ++unit) bytes /= 1000;
  return `${bytes.toLocaleString("en-US", { maximumFractionDigits: unit ? 2 : 0 })} ${units[unit]}`;
}
const amount = (curve, value) => curve.bytes ? size(value) : curve.unit === "bytes/s" ? rate(value)
  : curve.unit ? `${decimals(value)} ${curve.unit}` : decimals(value);
const counted = (n, word) => `${grouped(n)} ${word}${n === 1 ? "" : "s"}`;

// --- data

class Reader {
  constructor(bytes) { this.bytes = bytes; this.view = new DataView(bytes.buffer); this.at = 0; }
  length() { this.at += 4; return this.view.getUint32(this.at - 4, true); }
  block() {
    const length = this.length();
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }
  column() {  // each number from the planes of its seven-bit digits
    const planes = Array.from({ length: this.length() }, () => this.block());
    const at = new Uint32Array(planes.length), numbers = new Float64Array(planes.length ? planes[0].length : 0);
    for (let i = 0; i < numbers.length; ++i) {
      for (let plane = 0, scale = 1, digit = 128; digit & 128; ++plane, scale *= 128) {
        digit = planes[plane][at[plane]++];
        numbers[i] += (digit & 127) * scale;
      }
    }
    return numbers;
  }
}

async function read() {
  const packed = Uint8Array.from(atob($("data").textContent), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const reader = new Reader(new Uint8Array(await new Response(stream).arrayBuffer()));
  head = JSON.parse(new TextDecoder().decode(reader.block()));
  head.inks = head.colors.map(rgb => `#${rgb.toString(16).padStart(6, "0")}`);
  head.pale = head.paints.indexOf("ranks arrive");  // of a collective: data moves only from then on
  head.inks[head.pale] += "59";
  const [gap, length, looks, events, busy] = Array.from({ length: 5 }, () => reader.column());
  const count = gap.length, kinds = head.paints.length;
  [start, end] = [new Float64Array(count), new Float64Array(count)];
  [busySum, eventSum] = [new Float64Array(count + 1), new Float64Array(count + 1)];
  look = Uint32Array.from(looks);
  let item = 0, fold = 0;
  for (const row of head.rows) {
    row.first = item;
    row.lanes = row.lanes.map(items => {
      const lane = { row, first: item, last: item + items };
      for (let at = head.base; item < lane.last; ++item) {
        start[item] = at + gap[item];
        at = end[item] = start[item] + length[item];
        const isFold = look[item] < kinds;
        eventSum[item + 1] = eventSum[item] + (isFold ? events[fold] : 1);
        busySum[item + 1] = busySum[item] + (isFold ? busy[fold++] : length[item]);
      }
      return lane;
    });
    row.last = item;
  }
  const blocks = Math.ceil(count / BLOCK), times = new Float64Array(kinds);
  mostOf.times = new Float64Array(kinds);
  [longest, paintSum] = [new Float64Array(blocks), new Float64Array((blocks + 1) * kinds)];
  for (let i = 0; i < count; ++i) {
    if (i % BLOCK === 0) paintSum.set(times, i / BLOCK * kinds);
    const block = Math.floor(i / BLOCK);
    longest[block] = Math.max(longest[block], end[i] - start[i]);
    times[paintOf(i)] += busySum[i + 1] - busySum[i];
  }
  for (const curve of head.curves) {
    let at = head.from;
    curve.times = Float64Array.from(curve.times, step => at += step);
    curve.most = curve.highest.reduce((a, b) => Math.max(a, b), 0);
    curve.least = curve.lowest.reduce((a, b) => Math.min(a, b), 0);
  }
}
const isFold = i => look[i] < head.paints.length;
const fieldsOf = i => look[i] - head.paints.length;
const paintOf = i => isFold(i) ? look[i] : head.looks.paint[fieldsOf(i)];
const color = paint => head.inks[paint];

// --- searching the items of a lane, which do not overlap and are in order

function firstFrom(times, from, to, time) {  // the first in [from, to) at `time` or later
  while (from < to) {
    const middle = (from + to) >> 1;
    if (times[middle] < time) from = middle + 1; else to = middle;
  }
  return from;
}
function nextLasting(i, stop, time) {  // the first in [i, stop) that lasts at least that long
  while (i < stop) {
    if (i % BLOCK === 0 && i + BLOCK <= stop && longest[i / BLOCK] < time) i += BLOCK;
    else if (end[i] - start[i] >= time) return i;
    else ++i;
  }
  return stop;
}
function mostOf(first, last) {  // the kind that takes most time of the items [first, last)
  if (last - first === 1) return paintOf(first);
  const kinds = head.paints.length, times = mostOf.times.fill(0);
  const from = Math.ceil(first / BLOCK), to = Math.floor(last / BLOCK);
  const walk = (a, b) => { for (let i = a; i < b; ++i) times[paintOf(i)] += busySum[i + 1] - busySum[i]; };
  if (from >= to) walk(first, last);
  else {
    walk(first, from * BLOCK);
    for (let k = 0; k < kinds; ++k) times[k] += paintSum[to * kinds + k] - paintSum[from * kinds + k];
    walk(to * BLOCK, last);
  }
  let best = paintOf(first);
  times.forEach((time, paint) => { if (time > times[best]) best = paint; });
  return best;
}
// The busy time of item i outside [from, to). Within a fold it is spread evenly.
function outside(i, from, to) {
  const length = end[i] - start[i], out = Math.max(0, Math.min(length, from - start[i])) +
    Math.max(0, Math.min(length, end[i] - to));
  return length > 0 ? out * (busySum[i + 1] - busySum[i]) / length : 0;
}

// Calls bar(i) for items of at least two pixels, and column(x, first, last, busy) for what is shorter: the items
// that touch pixel x, and how long they are busy in it.
function foldLane(lane, bar, column) {
  const scale = view.width / (view.to - view.from), shortest = 2 / scale;
  let i = firstFrom(end, lane.first, lane.last, view.from);
  if (i < lane.last && end[i] === view.from && start[i] < view.from) ++i;
  const stop = firstFrom(start, i, lane.last, view.to);
  let pixel = null;
  const flush = () => { if (pixel) column(pixel.x, pixel.first, pixel.last, pixel.busy); pixel = null; };
  while (i < stop) {
    if (end[i] - start[i] >= shortest) { bar(i++); continue; }
    const next = nextLasting(i, stop, shortest);
    for (let x = -1; i < next;) {
      x = Math.max(x + 1, Math.floor((start[i] - view.from) * scale), 0);
      if (x >= view.width) return flush();
      const from = view.from + x / scale, to = view.from + (x + 1) / scale;
      const after = Math.max(i + 1, firstFrom(start, i, next, to));
      let busy = busySum[after] - busySum[i] - outside(i, from, to);
      if (after - 1 > i) busy -= outside(after - 1, from, to);
      if (!pixel || pixel.x !== x) { flush(); pixel = { x, first: i, last: after, busy }; }
      else { pixel.busy += busy; pixel.last = after; }
      i = end[after - 1] > to && after < next + 1 && end[after - 1] > start[after - 1] ? after - 1 : after;
    }
  }
  flush();
}
