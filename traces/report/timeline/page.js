// The third part: what is under the mouse, finding, the mouse and the keyboard; starts the page.

// --- moving

function show(from, to) {
  const most = head.to - head.from, least = Math.min(most, 20), span = Math.min(most, Math.max(least, to - from));
  from = Math.max(head.from, Math.min(from + ((to - from) - span) / 2, head.to - span));
  [view.from, view.to] = [from, from + span];
  repaint();
}
function zoom(factor, x = view.width / 2) {
  const at = timeOf(x), span = (view.to - view.from) * factor;
  const share = x / view.width;
  show(at - span * share, at + span * (1 - share));
}
function pan(share) {
  const by = (view.to - view.from) * share;
  const kept = Math.max(head.from - view.from, Math.min(by, head.to - view.to));
  show(view.from + kept, view.to + kept);
}
function goTo(i) {
  const length = Math.max(20, end[i] - start[i]);
  const group = head.rows.find(row => i < row.last).group;
  if (folded.delete(group)) layout();
  const line = lines.find(l => l.lane && i >= l.lane.first && i < l.lane.last);
  const tall = canvas.clientHeight - RULER;
  if (line.y < scroll || line.y + line.h > scroll + tall) scroll = line.y - tall / 2;
  show(start[i] - length * 2, end[i] + length * 2);
}

// --- what is under the mouse

function under(x, y) {
  const page = y - RULER + scroll, line = y < RULER ? null : lines.find(l => page >= l.y && page < l.y + l.h);
  if (!line) return null;
  if (x < NAMES) return { line };
  if (!line.lane) return { line, time: timeOf(x - NAMES) };
  let hit = { line, time: timeOf(x - NAMES) };
  foldLane(line.lane, i => { if (xOf(start[i]) <= x - NAMES && x - NAMES < xOf(end[i])) hit.item = i; },
    (column, first, last, busy) => { if (column === Math.floor(x - NAMES) && hit.item === undefined) Object.assign(hit, { first, last, busy }); });
  if (hit.item === undefined && hit.last - hit.first === 1) hit.item = hit.first;
  return hit;
}
function rowFields(line) {
  return [["rank", head.groups[line.group].rank ?? ""], ["row", line.row.label + (line.row.lanes.length > 1 ? `, line ${line.n + 1}` : "")]];
}
// The title and the fields of what is there, as text; null for nothing.
function describe(hit) {
  if (!hit) return null;
  const { line } = hit;
  if (line.curve) {
    if (hit.time === undefined) return null;
    const { curve } = line, at = extremes(curve, hit.time, hit.time + (view.to - view.from) / view.width);
    const value = !at ? "unknown" : at.low === at.high ? amount(curve, at.low) : `${amount(curve, at.low)} to ${amount(curve, at.high)}`;
    return { title: curve.label, fields: [["time", instant(hit.time)], ["value", value], ["rank", head.groups[line.group].rank ?? ""]] };
  }
  if (!line.lane) return { title: head.groups[line.group].label, fields: [["device", head.groups[line.group].note]] };
  if (hit.item === undefined && hit.first === undefined) {
    if (hit.time !== undefined) return null;
    const { first, last, lanes } = line.row;
    return { title: line.row.label, fields: [["rank", head.groups[line.group].rank ?? ""], ["lines", lanes.length],
      ["events", grouped(eventSum[last] - eventSum[first])], ["sum of durations", exact(busySum[last] - busySum[first])]] };
  }
  if (hit.item === undefined) {
    const events = eventSum[hit.last] - eventSum[hit.first], pixel = (view.to - view.from) / view.width;
    return { title: `${counted(events, "event")} in this pixel`, fields: [["busy", `${duration(hit.busy)} of ${duration(pixel)}`],
      ["most time", head.paints[mostOf(hit.first, hit.last)]], ...rowFields(line), ["", "zoom in to tell them apart"]] };
  }
  const i = hit.item, length = end[i] - start[i];
  if (isFold(i)) return { title: `${counted(eventSum[i + 1] - eventSum[i], "event")}, folded`, fields: [["start", instant(start[i])],
    ["busy", `${exact(busySum[i + 1] - busySum[i])} of ${exact(length)}`], ["most time", head.paints[look[i]]], ...rowFields(line),
    ["", `each is shorter than ${duration(head.shorter)}; their places are not in this file`]] };
  const f = fieldsOf(i), l = head.looks, text = (list, n) => n < 0 ? "" : list[n];
  return { title: head.names[l.name[f]], fields: [["start", instant(start[i])], ["duration", exact(length)], ["kind", head.paints[l.paint[f]]],
    ...rowFields(line), ["operation", text(head.operations, l.operation[f])], ["module", text(head.modules, l.module[f])],
    ["unit", text(head.units, l.unit[f])], ["bytes", l.bytes[f] > 0 ? `${size(l.bytes[f])} (${grouped(l.bytes[f])} B)` : ""]] };
}
const shown = fields => fields.filter(([, value]) => value !== "");
function showTip() {
  const tip = $("tip"), what = mouse && !drag && describe(under(mouse.x, mouse.y));
  tip.hidden = !what;
  if (!what) return;
  const title = document.createElement("b"), list = document.createElement("dl");
  title.textContent = what.title;
  for (const [label, value] of shown(what.fields)) {
    list.append(Object.assign(document.createElement("dt"), { textContent: label }),
      Object.assign(document.createElement("dd"), { textContent: value }));
  }
  tip.replaceChildren(title, list);
  const box = canvas.getBoundingClientRect(), x = box.left + mouse.x + 14, y = box.top + mouse.y + 14;
  tip.style.left = `${Math.max(4, Math.min(x, innerWidth - tip.offsetWidth - 6))}px`;
  tip.style.top = `${y + tip.offsetHeight > innerHeight ? Math.max(4, y - tip.offsetHeight - 28) : y}px`;
}

// --- finding

function find(text) {
  const sought = text.trim().toLowerCase(), has = list => list.map(name => name.toLowerCase().includes(sought));
  found = null;
  $("found").textContent = "";
  if (sought) {
    const [names, modules, units, operations] = [head.names, head.modules, head.units, head.operations].map(has);
    const l = head.looks, matches = l.name.map((name, f) => names[name] || modules[l.module[f]] || units[l.unit[f]] || operations[l.operation[f]]);
    found = { hits: new Map(), all: [], at: -1 };
    for (const row of head.rows) for (const lane of row.lanes) {
      const hits = [];
      for (let i = lane.first; i < lane.last; ++i) if (!isFold(i) && matches[fieldsOf(i)]) hits.push(i);
      if (hits.length) found.hits.set(lane, hits);
      for (const i of hits) found.all.push(i);
    }
    found.all.sort((a, b) => start[a] - start[b] || a - b);
    const shownByName = head.names.map(() => 0);
    for (const row of head.rows) if (row.kind !== "collectives")
      for (let i = row.first; i < row.last; ++i) if (!isFold(i)) ++shownByName[l.name[fieldsOf(i)]];
    const hidden = head.counts.reduce((sum, n, name) => sum + (names[name] ? n - shownByName[name] : 0), 0);
    $("found").textContent = counted(found.all.length, "hit") + (hidden ? `; ${grouped(hidden)} more folded` : "");
  }
  repaint();
}
function nextHit(by) {
  if (!found || !found.all.length) return;
  const count = found.all.length;
  found.at = found.at < 0 ? (by > 0 ? 0 : count - 1) : (found.at + by + count) % count;
  $("found").textContent = `${grouped(found.at + 1)} of ${counted(count, "hit")}`;
  pick(found.all[found.at]);
  goTo(picked);
}
function pick(i) {
  picked = i;
  const line = i === null ? null : lines.find(l => l.lane && i >= l.lane.first && i < l.lane.last);
  if (!line) return $("kept").textContent = $("notes").firstElementChild.textContent;
  const what = describe({ line, item: i });
  $("kept").textContent = [what.title, ...shown(what.fields).map(([label, value]) => label ? `${label}: ${value}` : value)].join(" · ");
}

// --- mouse and keyboard

const place = event => ({ x: event.offsetX, y: event.offsetY });
function listen() {
  const on = (type, act) => canvas.addEventListener(type, act);
  on("pointerdown", event => { drag = { ...place(event), from: view.from, to: view.to, scroll, moved: false }; canvas.setPointerCapture(event.pointerId); });
  on("pointermove", event => {
    mouse = place(event);
    if (drag && Math.abs(mouse.x - drag.x) + Math.abs(mouse.y - drag.y) > 4) drag.moved = true;
    if (!drag || !drag.moved) return showTip();
    canvas.classList.add("drags");
    const by = Math.max(head.from - drag.from, Math.min((drag.x - mouse.x) * (drag.to - drag.from) / view.width, head.to - drag.to));
    scroll = drag.scroll + drag.y - mouse.y;
    show(drag.from + by, drag.to + by);
  });
  on("pointerup", event => {
    const click = drag && !drag.moved, hit = click && under(event.offsetX, event.offsetY);
    drag = null;
    canvas.classList.remove("drags");
    if (!hit) return;
    if (hit.line.group !== undefined && head.groups[hit.line.group].rank !== undefined) rank = hit.line.group;
    if (!hit.line.lane && !hit.line.curve) { folded.delete(hit.line.group) || folded.add(hit.line.group); layout(); }
    else if (hit.item !== undefined) pick(hit.item);
    repaint();
  });
  on("pointerleave", () => { mouse = null; showTip(); });
  on("dblclick", event => { const hit = under(event.offsetX, event.offsetY); if (hit && hit.item !== undefined) goTo(hit.item); });
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 20 : 1, y = event.deltaY * unit, x = event.deltaX * unit;
    if (event.shiftKey || event.offsetX < NAMES) { scroll += y || x; repaint(); }
    else if (Math.abs(x) > Math.abs(y)) pan(x / view.width);
    else zoom(2 ** (Math.max(-200, Math.min(200, y)) / 240), event.offsetX - NAMES);
  }, { passive: false });
  const page = () => canvas.clientHeight - RULER;
  const keys = {
    w: () => zoom(0.7), s: () => zoom(1 / 0.7), a: () => pan(-0.15), d: () => pan(0.15), f: () => show(head.from, head.to),
    arrowleft: () => pan(-0.15), arrowright: () => pan(0.15), home: () => pan(-Infinity), end: () => pan(Infinity),
    arrowup: () => { scroll -= 60; repaint(); }, arrowdown: () => { scroll += 60; repaint(); },
    pageup: () => { scroll -= page(); repaint(); }, pagedown: () => { scroll += page(); repaint(); },
    z: () => { if (picked !== null) goTo(picked); }, n: () => nextHit(1), p: () => nextHit(-1), "/": () => $("find").focus(),
    escape: () => { $("find").value = ""; pick(null); find(""); },
  };
  addEventListener("keydown", event => {
    const key = event.key.toLowerCase();
    if ((event.ctrlKey || event.metaKey) && key === "f") { $("find").focus(); $("find").select(); return event.preventDefault(); }
    if (event.ctrlKey || event.metaKey || event.altKey || (event.target === $("find") && key !== "escape") || !keys[key]) return;
    keys[key]();
    event.preventDefault();
  });
  let last = "";
  const search = () => { if ($("find").value !== last) find(last = $("find").value); };
  $("find").addEventListener("input", search);
  $("find").addEventListener("keydown", event => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    search();
    nextHit(event.shiftKey ? -1 : 1);
  });
  for (const [id, key] of [["fit", "f"], ["in", "w"], ["out", "s"]]) $(id).addEventListener("click", keys[key]);
  new ResizeObserver(repaint).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readTheme(); repaint(); });
}
function legend() {
  const seen = new Set();
  for (let i = 0; i < look.length; ++i) seen.add(paintOf(i));
  for (const paint of [...seen].sort((a, b) => a - b)) {
    const entry = document.createElement("li"), box = document.createElement("i");
    box.style.background = color(paint);
    entry.append(box, head.paints[paint]);
    $("legend").append(entry);
  }
}

(async () => {
  try {
    if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old; use Chrome 80, Firefox 113, Safari 16.4 or later");
    await read();
    readTheme();
    layout();
    view = { from: head.from, to: head.to, width: 1 };
    rank = Math.max(0, head.groups.findIndex(group => group.steps.number.length));
    paint();
    listen();
    legend();
    document.documentElement.dataset.ready = Math.round(performance.now());
  } catch (error) {
    $("kept").className = "bad";
    $("kept").textContent = `The timeline cannot be shown: ${error.message}.`;
    throw error;
  }
})();
