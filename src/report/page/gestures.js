// Zoom and pan of a picture along an axis. Mouse: drag chooses a range, Shift and drag moves, wheel zooms once the
// picture has been clicked (or with Ctrl), so that the page still scrolls over it; double click shows all. Fingers: one
// moves, two zoom. Keyboard: + and - zoom, arrows move the reading mark, with Shift the range, Escape shows all.

// p: the picture. span(): [left, right] in CSS pixels. point(value, x, y, show): the mark is there.
function gestures(p, axis, span, point) {
  const canvas = p.canvas, pointers = new Map();
  let begun = null, mark = null;
  const valueAt = clientX => {
    const [left, right] = span(), r = canvas.getBoundingClientRect();
    const share = ((clientX - r.left) * p.width / r.width - left) / (right - left);
    return axis.lo + Math.min(1, Math.max(0, share)) * (axis.hi - axis.lo);
  };
  const note = (value, x, y) => { mark = value; p.mark = value; point(value, x, y); later(p); };
  const away = () => { mark = p.mark = null; hideTip(); later(p); };

  canvas.addEventListener('wheel', e => {
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      if (!axis.zoomed) return;
      e.preventDefault();
      axis.pan(e.deltaX / p.width);
    } else if (e.ctrlKey || e.metaKey || document.activeElement === canvas) {
      e.preventDefault();
      axis.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 300))), valueAt(e.clientX));
    }
  }, {passive: false});

  canvas.addEventListener('pointerdown', e => {
    pointers.set(e.pointerId, e.clientX);
    canvas.setPointerCapture(e.pointerId);
    const held = [...pointers.values()];
    begun = {lo: axis.lo, hi: axis.hi, held, value: valueAt(e.clientX), move: e.pointerType === 'touch' || e.shiftKey};
  });
  canvas.addEventListener('pointermove', e => {
    if (!pointers.has(e.pointerId)) { note(valueAt(e.clientX), e.clientX, e.clientY); return; }
    pointers.set(e.pointerId, e.clientX);
    const now = [...pointers.values()];
    if (now.length === 2 && begun.held.length === 2) pinch(begun, now);
    else if (begun.move) drag(begun, now[0]);
    else { p.range = [begun.value, valueAt(e.clientX)]; note(valueAt(e.clientX), e.clientX, e.clientY); }
  });
  const release = e => {
    pointers.delete(e.pointerId);
    const range = p.range;
    p.range = null;
    if (range && e.type === 'pointerup' && Math.abs(range[1] - range[0]) > 0.01 * (axis.hi - axis.lo))
      axis.set(Math.min(...range), Math.max(...range));
    else if (e.pointerType === 'touch') note(valueAt(e.clientX), e.clientX, e.clientY);
    later(p);
  };
  canvas.addEventListener('pointerup', release);
  canvas.addEventListener('pointercancel', release);
  canvas.addEventListener('pointerleave', away);
  canvas.addEventListener('blur', away);
  canvas.addEventListener('dblclick', () => axis.reset());

  function drag(from, x) {
    const [left, right] = span();
    const by = (from.held[0] - x) / (right - left) * (from.hi - from.lo);
    axis.set(from.lo + by, from.hi + by);
  }
  function pinch(from, now) {
    const [left, right] = span();
    const at = x => from.lo + (x - canvas.getBoundingClientRect().left - left) / (right - left) * (from.hi - from.lo);
    const factor = Math.abs(from.held[1] - from.held[0]) / Math.max(8, Math.abs(now[1] - now[0]));
    const middle = at((from.held[0] + from.held[1]) / 2), size = (from.hi - from.lo) * factor;
    const share = (middle - from.lo) / (from.hi - from.lo);
    axis.set(middle - share * size, middle + (1 - share) * size);
  }

  canvas.addEventListener('keydown', e => {
    const by = e.key === 'ArrowLeft' ? -1 : e.key === 'ArrowRight' ? 1 : 0;
    if (by && e.shiftKey) axis.pan(by * 0.2);
    else if (by) step(by);
    else if (e.key === '+' || e.key === '=') axis.zoom(0.6);
    else if (e.key === '-') axis.zoom(1 / 0.6);
    else if (e.key === 'Escape' || e.key === '0') { axis.reset(); away(); }
    else return;
    e.preventDefault();
  });
  function step(by) {
    const from = mark === null ? (axis.lo + axis.hi) / 2 : mark + by * (axis.hi - axis.lo) / 100;
    const value = Math.min(axis.hi, Math.max(axis.lo, from));
    const [left, right] = span(), r = canvas.getBoundingClientRect();
    note(value, r.left + left + (value - axis.lo) / (axis.hi - axis.lo) * (right - left), r.top + 20);
  }
  axis.followers.push(() => later(p));
}

// The mark under the pointer and the range that is being chosen.
function drawMarks(c, p, box, x) {
  if (p.range) {
    const [a, b] = p.range.map(x).sort((m, n) => m - n);
    c.globalAlpha = 0.15;
    c.fillStyle = color('accent');
    c.fillRect(a, box.top, b - a, box.bottom - box.top);
    c.globalAlpha = 1;
  }
  if (known(p.mark)) {
    c.fillStyle = color('mark');
    c.fillRect(Math.round(x(p.mark)), box.top, 1, box.bottom - box.top);
  }
}

// Buttons for the same, for an axis.
function zoomTools(axis, words) {
  const button = (text, label, act) => h('button', {type: 'button', 'aria-label': label, title: label, onclick: act}, text);
  return [button('−', 'Show more of ' + words, () => axis.zoom(1 / 0.6)), button('+', 'Zoom into ' + words, () => axis.zoom(0.6)),
    button('◂', 'Earlier', () => axis.pan(-0.4)), button('▸', 'Later', () => axis.pan(0.4)),
    button('All', 'Show all of ' + words, () => axis.reset())];
}
