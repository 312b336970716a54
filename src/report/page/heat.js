// Heatmaps: a row for everything that was watched, darker where there was more of it.
//
// rows: {label, group, at(i) -> byte (255 unknown), value(byte) -> text}. Columns are given by edges: column i covers
// [edges[i], edges[i + 1]) of the axis.

// Darker is more, in both themes. 0..254; 255 is the colour of what is not known.
function ramp() {
  const parse = name => { const t = color(name); return [1, 3, 5].map(i => parseInt(t.slice(i, i + 2), 16)); };
  const stops = [parse('idle'), ...[['#a9c6e3'], ['#4d8ac4'], ['#1d4f91']].map(([t]) => [1, 3, 5].map(i => parseInt(t.slice(i, i + 2), 16))), parse('busy')];
  const out = new Uint32Array(256);
  const pack = ([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;
  for (let i = 0; i < 255; i++) {
    const at = i / 254 * (stops.length - 1), k = Math.min(stops.length - 2, Math.floor(at)), f = at - k;
    out[i] = pack(stops[k].map((v, j) => Math.round(v + f * (stops[k + 1][j] - v))));
  }
  out[255] = pack(parse('unknown'));
  return out;
}

function rampLegend(less, more) {
  const stops = 'linear-gradient(90deg, var(--idle), #a9c6e3, #4d8ac4, #1d4f91, var(--busy))';
  return [h('span', {class: 'ramp'}, less, h('i', {style: {background: stops}}), more),
    h('span', {class: 'ramp'}, h('i', {style: {background: 'var(--unknown)', width: '12px'}}), 'unknown')];
}

function heatmap({title, axis, kind, rows, edges, gist, legend, rowHeight, unitHead}) {
  const box = {left: 0, top: 6};
  const tall = () => { const list = rows(); return Math.round(Math.max(40, Math.min(1100, list.length * rowHeight(list.length))) + gaps(list).total + 32); };
  const p = picture({title, gist, legend, height: tall, draw});
  gestures(p, axis, () => [box.left, box.right], point);
  let layout = [];

  function draw(c, width, all) {
    const list = rows(), extra = gaps(list);
    Object.assign(box, {left: LEFT + (groupNames(list) ? 18 : 0), right: width - 6, bottom: all - 26});
    const each = (box.bottom - box.top - extra.total) / list.length;
    layout = list.map((r, i) => ({top: box.top + i * each + extra.before[i], bottom: box.top + (i + 1) * each + extra.before[i]}));
    paint(c, list);
    labels(c, list, each);
    const x = bottomAxis(c, box, axis, kind);
    drawMarks(c, p, box, x);
  }

  // One pixel of the picture a column, the mean of what lies in it.
  function paint(c, list) {
    const colors = ramp(), dense = c.getTransform().a, columns = Math.max(1, Math.round((box.right - box.left) * Math.min(2, dense)));
    const spans = columnSpans(columns);
    const off = document.createElement('canvas');
    off.width = columns;
    off.height = list.length;
    const context = off.getContext('2d'), image = context.createImageData(columns, list.length);
    const pixels = new Uint32Array(image.data.buffer);
    list.forEach((row, r) => {
      for (let i = 0; i < columns; i++) pixels[r * columns + i] = colors[meanByte(row, spans[2 * i], spans[2 * i + 1])];
    });
    context.putImageData(image, 0, 0);
    c.imageSmoothingEnabled = false;
    const spaced = list.length < 130 ? 0.5 : 0;
    list.forEach((row, r) => {
      const {top, bottom} = layout[r];
      c.drawImage(off, 0, r, columns, 1, box.left, top, box.right - box.left, Math.max(0.5, bottom - top - spaced));
    });
  }
  function columnSpans(columns) {
    const out = new Int32Array(2 * columns), step = (axis.hi - axis.lo) / columns;
    for (let i = 0; i < columns; i++) {
      const a = axis.lo + i * step, first = Math.max(0, lower(edges, a + step * 1e-6) - 1);
      out[2 * i] = first;
      out[2 * i + 1] = Math.max(first + 1, Math.min(edges.length - 1, lower(edges, a + step * (1 - 1e-6))));
      if (a > edges[edges.length - 1] || a + step < edges[0]) out[2 * i + 1] = out[2 * i];
    }
    return out;
  }

  function labels(c, list, each) {
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    let last = -99;
    list.forEach((row, i) => {
      const y = (layout[i].top + layout[i].bottom) / 2;
      if (y - last < 13) return;
      last = y;
      c.fillStyle = color('soft');
      c.fillText(cut(c, row.label, box.left - 12), box.left - 7, y);
    });
    const groups = groupNames(list);
    if (!groups) return;
    c.textAlign = 'center';
    for (const g of groups) {
      c.save();
      c.translate(9, (layout[g.from].top + layout[g.to].bottom) / 2);
      c.rotate(-Math.PI / 2);
      c.fillStyle = color('text');
      c.fillText(cut(c, g.name, layout[g.to].bottom - layout[g.from].top), 0, 0);
      c.restore();
    }
  }

  function point(value, px, py) {
    const r = p.canvas.getBoundingClientRect(), list = rows();
    const y = (py - r.top) * p.height / r.height;
    const k = Math.max(0, layout.findIndex(l => y < l.bottom)), row = list[k < 0 ? 0 : k];
    const i = Math.max(0, Math.min(edges.length - 2, lower(edges, value) - 1));
    const head = kind === 'time' ? clock(edges[i], edges[i + 1] - edges[i] < 1) : 'step ' + whole(edges[i]);
    showTip(head, [[null, (row.group && groupNames(list) ? row.group + ', ' : '') + (unitHead || '') + row.label, row.value(row.at(i))]], px, py);
  }
  p.refresh = () => p.draw();
  return p;
}

function meanByte(row, from, to) {
  if (to - from === 1) return row.at(from);
  let sum = 0, n = 0;
  for (let i = from; i < to; i++) {
    const b = row.at(i);
    if (b !== 255) { sum += b; n++; }
  }
  return n ? Math.round(sum / n) : 255;
}

// Where a group ends there is a little room.
function gaps(list) {
  let total = 0;
  const before = list.map((row, i) => i && row.group !== list[i - 1].group ? total += 6 : total);
  return {total, before};
}
function groupNames(list) {
  const out = [];
  list.forEach((row, i) => {
    if (i && row.group === list[i - 1].group) out[out.length - 1].to = i;
    else out.push({name: row.group, from: i, to: i});
  });
  return out.length > 1 ? out : null;
}
function cut(c, text, width) {
  if (c.measureText(text).width <= width) return text;
  let n = text.length;
  while (n > 1 && c.measureText(text.slice(0, n) + '…').width > width) n--;
  return text.slice(0, n) + '…';
}
