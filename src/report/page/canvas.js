// What every picture shares: a canvas as sharp as the screen, axes with round numbers, and drawing again when the
// window, the theme or the paper changes.

const pictures = [];
let paper = false;
const PAPER_PX = 700;

// A canvas in a figure with a title and a text for those who do not see it. draw(context, width, height) in CSS pixels.
function picture({title, legend, gist, height, draw, still}) {
  const canvas = h('canvas', {role: 'img', 'aria-label': gist, tabindex: still ? null : 0, class: still ? 'still' : null});
  const head = h('div', {class: 'title'}, h('b', {}, title), h('span', {class: 'legend'}, legend));
  const p = {figure: h('div', {class: 'chart'}, head, canvas), canvas, head, title};
  p.draw = () => {
    const width = paper ? PAPER_PX : p.figure.clientWidth, tall = typeof height === 'function' ? height(width) : height;
    const scale = paper ? 2.5 : Math.max(1, window.devicePixelRatio || 1);
    if (!width) return;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(tall * scale);
    canvas.style.height = tall + 'px';
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.font = '11.5px system-ui, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif';
    p.width = width;
    p.height = tall;
    draw(context, width, tall);
  };
  pictures.push(p);
  return p;
}

function drawAll() { for (const p of pictures) p.draw(); }

// Drawn at most once a frame, however many wheels turn.
function later(p) {
  if (p.waiting) return;
  p.waiting = true;
  requestAnimationFrame(() => { p.waiting = false; p.draw(); });
}

// About `count` round numbers between lo and hi.
function ticks(lo, hi, count) {
  const rough = (hi - lo) / Math.max(1, count);
  if (!(rough > 0)) return [lo];
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(k => k * size).find(k => k >= rough * 0.999);
  return multiples(lo, hi, step);
}
function multiples(lo, hi, step) {
  const out = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi + step * 1e-9; i++) out.push(i * step);
  return out;
}
const CLOCK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
function clockTicks(lo, hi, count) {
  const rough = (hi - lo) / Math.max(1, count);
  if (rough < 1) return ticks(lo, hi, count);
  return multiples(lo, hi, CLOCK_STEPS.find(k => k >= rough) || Math.ceil(rough / 86400) * 86400);
}
const byteTicks = (lo, hi, count) => {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(hi, 1)) / 10));
  return ticks(lo / unit, hi / unit, count).map(t => t * unit);
};

// Lines and numbers of the left axis; returns the mapping from values to pixels.
function leftAxis(c, box, lo, hi, unit) {
  const y = v => box.bottom - (v - lo) / (hi - lo) * (box.bottom - box.top);
  const at = (unit || '').startsWith('bytes') ? byteTicks : ticks;
  c.textAlign = 'right';
  c.textBaseline = 'middle';
  for (const t of at(lo, hi, Math.max(2, (box.bottom - box.top) / 42))) {
    c.fillStyle = color('grid');
    c.fillRect(box.left, Math.round(y(t)), box.right - box.left, 1);
    c.fillStyle = color('soft');
    c.fillText(axisNumber(t, unit), box.left - 7, y(t));
  }
  return y;
}
function axisNumber(v, unit) {
  if (unit === 'share') return Math.round(100 * v) + ' %';
  if (unit === 's' && v === 0) return '0';
  if (unit === 's' || (unit || '').startsWith('bytes')) return shortest(measure(v, unit));
  if (Math.abs(v) >= 1e6) return shortest(plain(v / 1e6)) + ' M';
  return Math.abs(v) >= 1e4 ? shortest(plain(v / 1e3)) + ' k' : shortest(plain(v));
}
const shortest = text => text.replace(/(\.\d*?)0+(?=\D|$)/, '$1').replace(/\.(?=\D|$)/, '');

// Numbers of the bottom axis; kind: 'time' or 'step'.
function bottomAxis(c, box, axis, kind) {
  const x = v => box.left + (v - axis.lo) / (axis.hi - axis.lo) * (box.right - box.left);
  const count = Math.max(2, (box.right - box.left) / 90);
  const fine = axis.hi - axis.lo < count;
  const list = kind === 'time' ? clockTicks(axis.lo, axis.hi, count)
    : ticks(axis.lo, axis.hi, count).filter(Number.isInteger);
  c.textAlign = 'center';
  c.textBaseline = 'top';
  c.fillStyle = color('soft');
  for (const t of list) {
    c.fillRect(Math.round(x(t)), box.bottom, 1, 4);
    c.fillText(kind === 'time' ? clock(t, fine) : whole(t), Math.min(Math.max(x(t), box.left), box.right - 14), box.bottom + 6);
  }
  c.fillRect(box.left, box.bottom, box.right - box.left, 1);
  return x;
}

// The text beside the pointer: rows of [colour or null, name, value].
function showTip(head, rows, clientX, clientY) {
  const tip = document.getElementById('tip');
  tip.replaceChildren(h('b', {}, head), ...rows.map(([mark, name, value]) =>
    h('div', {}, h('span', {}, mark && h('span', {class: 'swatch', style: {background: mark}}), name), h('span', {}, value))));
  const left = Math.min(clientX + 14, innerWidth - tip.offsetWidth - 8);
  tip.style.left = Math.max(4, left) + 'px';
  tip.style.top = Math.max(4, Math.min(clientY + 14, innerHeight - tip.offsetHeight - 8)) + 'px';
  tip.style.visibility = 'visible';
}
function hideTip() { document.getElementById('tip').style.visibility = 'hidden'; }
