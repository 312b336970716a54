// Numbers as text, the same under every locale, and elements made of text (never of markup).

const known = x => x !== null && x !== undefined && !Number.isNaN(x);

// `digits` significant ones, no exponent, thousands apart by a thin space.
function plain(x, digits = 3) {
  if (!known(x)) return 'unknown';
  if (!Number.isFinite(x)) return 'no limit';
  if (x === 0) return '0';
  const size = Math.floor(Math.log10(Math.abs(x)));
  if (size < -6) return x.toExponential(digits - 1);
  const text = x.toFixed(Math.min(12, Math.max(0, digits - 1 - size)));
  const [whole, part] = text.split('.');
  const grouped = Math.abs(x) >= 1e4 ? whole.replace(/\B(?=(\d{3})+$)/g, '\u202f') : whole;
  return part === undefined ? grouped : grouped + '.' + part;
}

const whole = x => known(x) ? plain(x, Math.max(1, Math.floor(Math.log10(Math.max(1, Math.abs(x)))) + 1)) : 'unknown';

function bytes(x) {
  if (!known(x) || !Number.isFinite(x)) return plain(x);
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let i = 0;
  for (; Math.abs(x) >= 1024 && i < units.length - 1; i++) x /= 1024;
  return plain(x) + ' ' + units[i];
}

function seconds(s) {
  if (!known(s)) return 'unknown';
  const size = Math.abs(s);
  if (size === 0) return '0 s';
  if (size < 1e-3) return plain(s * 1e6) + ' µs';
  if (size < 1) return plain(s * 1e3) + ' ms';
  if (size < 100) return plain(s) + ' s';
  const r = Math.round(s);
  if (r < 3600) return Math.floor(r / 60) + ' min ' + r % 60 + ' s';
  if (r < 86400) return Math.floor(r / 3600) + ' h ' + Math.floor(r % 3600 / 60) + ' min';
  return Math.floor(r / 86400) + ' d ' + Math.floor(r % 86400 / 3600) + ' h';
}

const percent = x => known(x) ? (100 * x).toFixed(Math.abs(x) < 0.0995 ? 2 : 1) + ' %' : 'unknown';

// 3725 -> "1:02:05", with parts of a second where `fine`.
function clock(s, fine) {
  const sign = s < 0 ? '-' : '';
  s = Math.abs(s);
  if (!fine) s = Math.round(s);
  const h = Math.floor(s / 3600), m = Math.floor(s % 3600 / 60), rest = s % 60;
  const two = n => String(n).padStart(2, '0');
  const tail = fine ? rest.toFixed(2).padStart(5, '0') : two(rest);
  return sign + (h ? h + ':' + two(m) : m) + ':' + tail;
}

const utc = t => known(t) ? new Date(t * 1000).toISOString().slice(0, 19).replace('T', ' ') + ' UTC' : 'unknown';

const FORMATS = {
  'bytes': bytes, 'bytes/s': x => bytes(x) + '/s', 's': seconds, 'seconds': seconds, 'share': percent,
  'seconds/s': x => plain(x) + ' s/s', '1/s': x => plain(x) + ' /s', 'MHz': x => plain(x, 4) + ' MHz',
  'cores': x => plain(x) + ' cores', 'threads': x => plain(x), 'W': x => plain(x) + ' W', '%': x => plain(x) + ' %',
};

// A value with its unit; unknown units stand behind the number.
function measure(x, unit) {
  if (!known(x)) return 'unknown';
  const format = FORMATS[unit];
  return format ? format(x) : plain(x, 4) + (unit ? ' ' + unit : '');
}

// h('p', {class: 'hint'}, 'text', element, [more]): strings become text nodes.
function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === 'style') Object.assign(element.style, value);
    else if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  for (const child of children.flat(9))
    if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

const color = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
const swatch = name => h('span', {class: 'swatch', style: {background: `var(--${name})`}});
const plural = (n, word) => whole(n) + ' ' + word + (n === 1 ? '' : 's');
const slug = text => text.toLowerCase().replace(/[^a-z]+/g, '-');
