// Lines, areas and stacks along an axis that charts share.
//
// series: {name, color (of the style sheet), values, fill, width, low, high (a band around), dash}; all of them have one
// value for each x. Unknown values leave a gap.

const LEFT = 62;

function lineChart({title, axis, kind, x, series, unit, height = 170, stack, gist, limits, legend = true, top}) {
  let scale = null;
  const box = {left: LEFT, top: 12};
  const p = picture({title, gist, height, legend: legend ? legendOf(series()) : null, draw});
  gestures(p, axis, () => [box.left, box.right], point);
  p.refresh = () => {
    if (legend) p.head.lastChild.replaceChildren(...legendOf(series()));
    p.draw();
  };

  function draw(c, width, tall) {
    Object.assign(box, {right: width - 6, bottom: tall - 24});
    const all = series(), [from, to] = within(x, axis.lo, axis.hi);
    const sums = stack ? stacked(all, from, to) : null;
    const [lo, hi] = limits || reach(sums || all, from, to, top);
    const y = leftAxis(c, box, lo, hi, unit);
    scale = bottomAxis(c, box, axis, kind);
    c.save();
    c.beginPath();
    c.rect(box.left, box.top - 2, box.right - box.left, box.bottom - box.top + 3);
    c.clip();
    if (sums) drawStack(c, sums, x, from, to, scale, y, box);
    else for (const s of all) drawSeries(c, s, x, from, to, scale, y, box);
    drawMarks(c, p, box, scale);
    c.restore();
  }

  function point(value, px, py) {
    const i = nearest(x, value), all = series();
    const head = kind === 'time' ? clock(x[i], axis.hi - axis.lo < 120) : 'step ' + whole(x[i]);
    const rows = all.map(s => [color(s.color), s.name, measure(s.values[i], unit)]);
    const shown = rows.length > 12 ? rows.map((r, k) => [r, all[k].values[i]]).filter(r => known(r[1]))
      .sort((a, b) => b[1] - a[1]).slice(0, 10).map(r => r[0]) : rows;
    if (rows.length > 12) shown.push([null, 'and ' + (rows.length - shown.length) + ' more', '']);
    showTip(head, shown, px, py);
  }
  return p;
}

const legendOf = all => all.length > 12 ? [plural(all.length, 'line')] : all.map(s => h('span', {}, swatch(s.color), s.name));

// Indices of x that a range shows, with one beyond each end.
function within(x, lo, hi) {
  return [Math.max(0, lower(x, lo) - 1), Math.min(x.length - 1, lower(x, hi))];
}
function lower(x, value) {
  let a = 0, b = x.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (x[m] < value) a = m + 1;
    else b = m;
  }
  return a;
}
function nearest(x, value) {
  const i = lower(x, value);
  if (i === 0) return 0;
  return i === x.length || value - x[i - 1] < x[i] - value ? i - 1 : i;
}

// [0 or less, a little more than the most] of what is shown; `top`: at least so much.
function reach(all, from, to, top) {
  let lo = 0, hi = top || 0;
  for (const s of all)
    for (const list of [s.values, s.high, s.low])
      if (list) for (let i = from; i <= to; i++)
        if (known(list[i]) && Number.isFinite(list[i])) { hi = Math.max(hi, list[i]); lo = Math.min(lo, list[i]); }
  return [lo, hi > lo ? hi + (hi - lo) * 0.06 : lo + 1];
}

function stacked(all, from, to) {
  const sum = new Float64Array(to + 1);
  return all.map(s => {
    const values = new Float64Array(to + 1), low = new Float64Array(to + 1);
    for (let i = from; i <= to; i++) {
      low[i] = sum[i];
      sum[i] += known(s.values[i]) ? s.values[i] : 0;
      values[i] = sum[i];
    }
    return {...s, values, low};
  });
}

// Areas of steps: each value stands for its whole bin.
function drawStack(c, sums, x, from, to, scale, y) {
  for (const s of sums) {
    c.fillStyle = color(s.color);
    c.beginPath();
    for (let i = from; i <= to; i++) c.lineTo(scale(x[i]), y(s.values[i]));
    for (let i = to; i >= from; i--) c.lineTo(scale(x[i]), y(s.low[i]));
    c.fill();
  }
}

function drawSeries(c, s, x, from, to, scale, y, box) {
  if (s.low && s.high) drawBand(c, s, x, from, to, scale, y);
  c.strokeStyle = color(s.color);
  c.lineWidth = s.width || 1.4;
  c.setLineDash(s.dash || []);
  c.lineJoin = 'round';
  c.beginPath();
  const dense = (to - from) > 3 * (box.right - box.left);
  if (dense) traceDense(c, s.values, x, from, to, scale, y);
  else trace(c, s.values, x, from, to, scale, y);
  c.stroke();
  c.setLineDash([]);
  if (to - from < 40) dots(c, s.values, x, from, to, scale, y);
}
function trace(c, values, x, from, to, scale, y) {
  let pen = false;
  for (let i = from; i <= to; i++) {
    const v = values[i];
    if (!known(v) || !Number.isFinite(v)) { pen = false; continue; }
    if (pen) c.lineTo(scale(x[i]), y(v));
    else c.moveTo(scale(x[i]), y(v));
    pen = true;
  }
}
// More values than pixels: least and most of each column, so that no peak is lost.
function traceDense(c, values, x, from, to, scale, y) {
  let column = -1, lo = 0, hi = 0;
  for (let i = from; i <= to; i++) {
    const v = values[i];
    if (!known(v) || !Number.isFinite(v)) continue;
    const px = Math.round(scale(x[i]));
    if (px === column) { lo = Math.min(lo, v); hi = Math.max(hi, v); continue; }
    if (column >= 0) { c.lineTo(column, y(lo)); c.lineTo(column, y(hi)); }
    column = px;
    lo = hi = v;
  }
  if (column >= 0) { c.lineTo(column, y(lo)); c.lineTo(column, y(hi)); }
}
function dots(c, values, x, from, to, scale, y) {
  c.fillStyle = c.strokeStyle;
  for (let i = from; i <= to; i++)
    if (known(values[i]) && Number.isFinite(values[i])) {
      c.beginPath();
      c.arc(scale(x[i]), y(values[i]), 2.2, 0, 7);
      c.fill();
    }
}
function drawBand(c, s, x, from, to, scale, y) {
  c.globalAlpha = 0.2;
  c.fillStyle = color(s.color);
  c.beginPath();
  for (let i = from; i <= to; i++) if (known(s.high[i])) c.lineTo(scale(x[i]), y(s.high[i]));
  for (let i = to; i >= from; i--) if (known(s.low[i])) c.lineTo(scale(x[i]), y(s.low[i]));
  c.fill();
  c.globalAlpha = 1;
}
