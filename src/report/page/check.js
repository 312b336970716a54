// With #check in the address the page looks at itself and writes what it saw into the root element: pictures that are
// blank, text that is hard to read, anything wider than the window. Tests read it; so may anybody who doubts a picture.

function check() {
  const root = document.documentElement;
  const blank = pictures.filter(p => isBlank(p.canvas)).map(p => p.title);
  const nameless = pictures.filter(p => !(p.canvas.getAttribute('aria-label') || '').trim()).map(p => p.title);
  const pale = paleTexts();
  const wide = root.scrollWidth > innerWidth ? widest() : [];
  const result = {ok: !blank.length && !nameless.length && !pale.length && !wide.length, pictures: pictures.length, blank, nameless, pale, wide,
    sections: [...document.querySelectorAll('section')].map(s => s.id), opened_ms: Math.round(performance.now())};
  root.dataset.check = JSON.stringify(result);
}

function isBlank(canvas) {
  if (!canvas.width || !canvas.height) return true;
  const data = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  let drawn = 0;
  const colors = new Set();
  for (const p of data) if (p) { drawn++; if (colors.size < 8) colors.add(p); }
  return drawn < data.length / 1000 || colors.size < 3;
}

// Texts with a contrast below 4.5 to what lies behind them (WCAG 2, AA).
function paleTexts() {
  const out = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || ['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(e.tagName) || !e.getClientRects().length) continue;
    const ratio = contrast(rgb(getComputedStyle(e).color), behind(e));
    if (ratio < 4.5) out.add(`${e.tagName.toLowerCase()}.${e.className}: ${ratio.toFixed(2)}`);
  }
  return [...out];
}
const rgb = text => (text.match(/[\d.]+/g) || []).map(Number);
function behind(e) {
  for (; e; e = e.parentElement) {
    const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c;
  }
  return [255, 255, 255];
}
function contrast(a, b) {
  const light = c => {
    const [r, g, l] = c.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * l;
  };
  const [x, y] = [light(a), light(b)].sort((m, n) => n - m);
  return (x + 0.05) / (y + 0.05);
}

function widest() {
  const out = [];
  for (const e of document.querySelectorAll('main *'))
    if (e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll')) out.push(`${e.tagName.toLowerCase()}.${e.className}`);
  return [...new Set(out)].slice(0, 8);
}
