// What the reader has chosen (ranges, cores, machine, theme) lives in the address behind the #, so that a page that
// is written anew, or passed on as a link, opens where it was.

const DATA = JSON.parse(document.getElementById('data').textContent);

const chosen = new URLSearchParams(location.hash.slice(1));
const CHECK = chosen.has('check');
let hashTimer = 0;

function choose(key, value) {
  if (value === null) chosen.delete(key);
  else chosen.set(key, value);
  clearTimeout(hashTimer);
  hashTimer = setTimeout(() => history.replaceState(null, '', '#' + decodeURIComponent(chosen.toString())), 200);
}

// Bytes of a matrix, row by row; 255 is unknown.
function matrix(text) {
  const raw = atob(text || '');
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

// A range that charts share. All of them follow when one is zoomed.
class Axis {
  constructor(key, lo, hi, least) {
    Object.assign(this, {key, min: lo, max: hi > lo ? hi : lo + 1, least, followers: []});
    [this.lo, this.hi] = [this.min, this.max];
    const asked = (chosen.get(key) || '').split(',').map(Number);
    if (asked.length === 2 && asked[1] > asked[0]) this.clamp(asked[0], asked[1]);
  }
  get zoomed() { return this.lo > this.min || this.hi < this.max; }
  clamp(lo, hi) {
    const span = Math.min(Math.max(hi - lo, this.least), this.max - this.min);
    const middle = (lo + hi) / 2;
    this.lo = Math.min(Math.max(middle - span / 2, this.min), this.max - span);
    this.hi = this.lo + span;
  }
  set(lo, hi) {
    this.clamp(lo, hi);
    choose(this.key, this.zoomed ? plainNumber(this.lo) + ',' + plainNumber(this.hi) : null);
    for (const follow of this.followers) follow();
  }
  reset() { this.set(this.min, this.max); }
  zoom(factor, at = (this.lo + this.hi) / 2) {
    this.set(at - (at - this.lo) * factor, at + (this.hi - at) * factor);
  }
  pan(share) {
    const by = share * (this.hi - this.lo);
    const room = by < 0 ? Math.max(by, this.min - this.lo) : Math.min(by, this.max - this.hi);
    this.set(this.lo + room, this.hi + room);
  }
}
const plainNumber = x => String(Math.round(x * 1000) / 1000);

// The theme: the system's, unless the reader has chosen another.
const system = matchMedia('(prefers-color-scheme: dark)');
function applyTheme(name) {
  const theme = name || chosen.get('theme') || (system.matches ? 'dark' : 'light');
  document.documentElement.dataset.theme = theme;
  document.getElementById('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
}
