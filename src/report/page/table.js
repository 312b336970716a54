// Tables: columns {name, value(row) for sorting, show(row), n: a number}. Sorted where asked.

function table(columns, rows, {sort, caption, total} = {}) {
  let by = sort === undefined ? null : sort, down = true;
  const body = h('tbody');
  const heads = columns.map((c, i) => {
    const text = sort === undefined || c.bar ? c.name
      : h('button', {type: 'button', onclick: () => { down = by === i ? !down : !!c.n; by = i; fill(); }}, c.name);
    return h('th', {scope: 'col', class: c.n ? 'n' : null}, text);
  });
  function fill() {
    const list = by === null ? rows : [...rows].sort((a, b) => order(columns[by].value(a), columns[by].value(b)) * (down ? -1 : 1));
    heads.forEach((th, i) => i === by ? th.setAttribute('aria-sort', down ? 'descending' : 'ascending') : th.removeAttribute('aria-sort'));
    body.replaceChildren(...list.map(row => h('tr', {}, columns.map(c => cell(c, row)))), ...(total ? [totalRow(columns, total)] : []));
  }
  fill();
  return h('div', {class: 'scroll'}, h('table', {'aria-label': caption}, h('thead', {}, h('tr', {}, heads)), body));
}

function cell(c, row) {
  if (c.bar) return h('td', {class: 'bar'}, h('i', {style: {width: 100 * Math.min(1, c.bar(row) || 0) + '%'}}));
  return h('td', {class: [c.n ? 'n' : '', c.wrap ? 'wrap' : ''].join(' ').trim() || null}, c.show ? c.show(row) : c.value(row));
}
const totalRow = (columns, total) => h('tr', {class: 'total'}, columns.map((c, i) => h('td', {class: c.n ? 'n' : null}, total[i] || '')));

function order(a, b) {
  if (!known(a)) return known(b) ? -1 : 0;
  if (!known(b)) return 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

// Names and values side by side.
const pairs = (list, caption) => table([{name: 'name', value: r => r[0]}, {name: 'value', value: r => r[1], wrap: true}], list, {caption});
