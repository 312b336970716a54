// Still pictures: a histogram of counts between edges.

function histogram({title, edges, counts, label, gist, mark}) {
  const most = Math.max(1, ...counts), total = counts.reduce((a, b) => a + b, 0);
  const p = picture({title, gist, height: 150, still: true, draw(c, width, tall) {
    const box = {left: LEFT, right: width - 6, top: 10, bottom: tall - 24};
    const y = leftAxis(c, box, 0, most / Math.max(1, total), 'share');
    const wide = (box.right - box.left) / counts.length;
    counts.forEach((n, i) => {
      c.fillStyle = color(mark && mark(i) ? 'mark' : 'forward');
      const up = n ? Math.max(1, box.bottom - y(n / total)) : 0;
      c.fillRect(box.left + i * wide + 0.5, box.bottom - up, Math.max(1, wide - 1), up);
    });
    c.textAlign = 'center';
    c.textBaseline = 'top';
    c.fillStyle = color('soft');
    c.fillRect(box.left, box.bottom, box.right - box.left, 1);
    const every = Math.max(1, Math.ceil(counts.length / ((box.right - box.left) / 78)));
    for (let i = 0; i < edges.length; i += every) {
      const x = box.left + i * wide;
      if (x < box.right - 24 || i === edges.length - 1) c.fillText(label(edges[i]), Math.min(x, box.right - 14), box.bottom + 6);
    }
  }});
  p.canvas.addEventListener('pointermove', e => {
    const r = p.canvas.getBoundingClientRect();
    const i = Math.floor((e.clientX - r.left - LEFT) / (r.width - LEFT - 6) * counts.length);
    if (i < 0 || i >= counts.length) { hideTip(); return; }
    showTip(label(edges[i]) + ' to ' + label(edges[i + 1]), [[null, whole(counts[i]), percent(counts[i] / total)]], e.clientX, e.clientY);
  });
  p.canvas.addEventListener('pointerleave', hideTip);
  return p;
}
