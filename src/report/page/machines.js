// What the machines did: lines of chosen cores, everything else on the same time, the heatmap of all of them, tables.

let timeAxis = null;
let currentHost = 0;
const hostWatchers = [];

function pickHost(name) {
  const i = DATA.hosts.findIndex(x => x.name === name);
  if (i >= 0) setHost(i);
}
function setHost(i) {
  currentHost = i;
  choose('host', i ? DATA.hosts[i].name : null);
  for (const w of hostWatchers) w();
}

// Byte k of core or device r at bin i; 254 steps make 100 %.
const share = b => b === 255 ? null : b / 254;
function prepareHosts() {
  for (const host of DATA.hosts) {
    host.busyBytes = matrix(host.busy);
    host.deviceBytes = matrix(host.device_busy);
    host.means = Array.from({length: host.cores}, (_, r) => meanShare(host.busyBytes, r, DATA.grid.bins));
  }
  const i = DATA.hosts.findIndex(x => x.name === chosen.get('host'));
  currentHost = Math.max(0, i);
}
function meanShare(list, row, bins) {
  let sum = 0, n = 0;
  for (let i = row * bins; i < (row + 1) * bins; i++) if (list[i] !== 255) { sum += list[i]; n++; }
  return n ? sum / n / 254 : null;
}
const rowShares = (list, row) => Array.from(list.subarray(row * DATA.grid.bins, (row + 1) * DATA.grid.bins), share);

function machineSection() {
  const grid = DATA.grid, x = Array.from({length: grid.bins}, (_, i) => (i + 0.5) * grid.seconds);
  const hosts = DATA.hosts, merged = hosts.some(t => t.merged > 1);
  const note = `Each point is the mean of ${seconds(grid.seconds)}` + (merged ? '; samples of this long run have been merged.' : '.');
  return section('Machines', note, hosts.length > 1 && hostPicker(), coreChart(x), seriesCharts(x),
    h('div', {class: 'tools'}, zoomTools(timeAxis, 'the time')), gestureHint());
}

function hostPicker() {
  const select = h('select', {'aria-label': 'Machine', onchange: e => setHost(Number(e.target.value))}, DATA.hosts.map((t, i) => h('option', {value: i}, t.name)));
  hostWatchers.push(() => { select.value = currentHost; });
  select.value = currentHost;
  return h('div', {class: 'tools'}, h('label', {}, 'Machine ', select));
}

// Which cores have a line: those asked for, else all of few, else the busiest and the idlest.
let picked = [];
function sortedCores(host) {
  return host.means.map((m, i) => [m, i]).filter(p => known(p[0])).sort((a, b) => b[0] - a[0]).map(p => p[1]);
}
function defaultCores(host) {
  const byMean = sortedCores(host);
  return byMean.length <= 8 ? byMean.sort((a, b) => a - b) : [...byMean.slice(0, 3), ...byMean.slice(-3)];
}

function coreChart(x) {
  const asked = (chosen.get('cores') || '').split('.').filter(Boolean).map(Number);
  picked = asked.length ? asked.filter(c => c < DATA.hosts[currentHost].cores) : defaultCores(DATA.hosts[currentHost]);
  const cache = new Map();
  const lines = () => {
    const host = DATA.hosts[currentHost];
    const line = r => cache.get(currentHost + '.' + r) || cache.set(currentHost + '.' + r, rowShares(host.busyBytes, r)).get(currentHost + '.' + r);
    const each = picked.map((r, k) => ({name: 'core ' + r, color: 'l' + k % 8, values: line(r), width: picked.length > 12 ? 0.7 : 1.2}));
    return [...each, {name: 'mean of all', color: 'text', values: host.mean, width: 2}];
  };
  const host = DATA.hosts[currentHost], busy = finite(host.mean);
  const mean = busy.reduce((a, b) => a + b, 0) / Math.max(1, busy.length);
  const order = sortedCores(host);
  const chart = lineChart({title: 'CPU by core', axis: timeAxis, kind: 'time', x, series: lines, unit: 'share', limits: [0, 1.02], height: 230,
    gist: `CPU of ${host.name}: mean ${percent(mean)} over ${plural(host.cores, 'core')}` + (order.length ? `, busiest core ${order[0]} at ${percent(host.means[order[0]])}` : '')});
  const picker = h('div', {class: 'cores', role: 'group', 'aria-label': 'Cores'});
  const quick = [['Mean only', () => []], ['Busiest 4', t => sortedCores(t).slice(0, 4)], ['Idlest 4', t => sortedCores(t).slice(-4)], ['All', t => sortedCores(t).sort((a, b) => a - b)]];
  function fill(all = true) {
    if (all) picker.replaceChildren(...Array.from({length: DATA.hosts[currentHost].cores}, (_, r) =>
      h('button', {type: 'button', 'aria-label': 'Core ' + r, 'data-core': r, onclick: () => toggle(r)}, String(r))));
    for (const b of picker.children) b.setAttribute('aria-pressed', String(picked.includes(Number(b.dataset.core))));
  }
  function pick(list, all) {
    picked = list;
    choose('cores', list.join('.') || '-');
    fill(all);
    chart.refresh();
  }
  const toggle = r => pick(picked.includes(r) ? picked.filter(c => c !== r) : [...picked, r], false);
  hostWatchers.push(() => { picked = defaultCores(DATA.hosts[currentHost]); choose('cores', null); fill(); chart.refresh(); });
  if (chosen.get('cores') === '-') picked = [];
  fill();
  return [chart.figure, h('div', {class: 'tools'}, h('span', {}, 'Lines:'), quick.map(([name, list]) =>
    h('button', {type: 'button', onclick: () => pick(list(DATA.hosts[currentHost]), false)}, name))), picker];
}

// Everything else that was watched, where it is known; a chart for each family.
const FAMILIES = [
  ['What the cores did', 'share', [['user', 'programs', 'forward'], ['system', 'kernel', 'reduce'], ['iowait', 'waiting for disks', 'data'], ['steal', 'taken by other machines', 'teacher']], {stack: true, limits: [0, 1.02]}],
  ['Cores taken by the job, by what its threads do', 'cores', [['compute_cpu', 'computing', 'backward'], ['loader_cpu', 'loading', 'data'], ['communication_cpu', 'communication', 'reduce'], ['other_cpu', 'other', 'other']], {stack: true}],
  ['Threads that run or wait for a core', 'threads', [['running', 'running or ready', 'l3'], ['blocked', 'waiting for a disk', 'l4'], ['cores', 'cores there are', 'l5']]],
  ['Threads of the job that could run and waited for a core', 'seconds/s', [['compute_wait', 'computing', 'l0'], ['loader_wait', 'loading', 'l1'], ['communication_wait', 'communication', 'l3'], ['other_wait', 'other', 'l5']]],
  ['Threads pushed aside (involuntary switches)', '1/s', [['compute_involuntary', 'computing', 'l0'], ['loader_involuntary', 'loading', 'l1'], ['communication_involuntary', 'communication', 'l3'], ['other_involuntary', 'other', 'l5']]],
  ['Context switches', '1/s', [['switches', 'all of the machine', 'l0']]],
  ['Memory', 'bytes', [['memory_used_bytes', 'used, all of the machine', 'l0'], ['job_rss_bytes', 'this job', 'l2'], ['group_used_bytes', 'in the cgroup', 'l4'], ['memory_total_bytes', 'there is', 'l5'], ['group_limit_bytes', 'limit of the cgroup', 'l3'], ['swap_used_bytes', 'swapped', 'l1']]],
  ['Disks', 'bytes/s', [['disk_read_bytes', 'read', 'l0'], ['disk_written_bytes', 'written', 'l1'], ['job_read_bytes', 'read by the job', 'l2']]],
  ['Network', 'bytes/s', [['net_received_bytes', 'received', 'l0'], ['net_sent_bytes', 'sent', 'l1']]],
  ['Share of the time in which something waited', 'share', [['pressure_cpu', 'for a core', 'l0'], ['pressure_memory', 'for memory', 'l3'], ['pressure_io', 'for a disk', 'l1'], ['disk_busy', 'busiest disk', 'l4'], ['group_throttled', 'quota used up', 'l6']]],
  ['Page faults that wait for a disk', '1/s', [['major_faults', 'major faults', 'l3']]],
  ['Frequency of the cores', 'MHz', [['frequency_mhz', 'mean', 'l2']]],
];

function seriesCharts(x) {
  const place = h('div', {});
  const fill = () => {
    place.replaceChildren(...FAMILIES.map(f => familyChart(f, x)).filter(Boolean));
    drawAll();
  };
  const made = FAMILIES.map(f => familyChart(f, x)).filter(Boolean);
  place.append(...made);
  hostWatchers.push(fill);
  return place;
}

const charts = new Map();
function familyChart([title, unit, names, more], x) {
  const has = name => name === 'cores' ? true : finite(DATA.hosts[currentHost].series[name] || []).length > 0;
  const there = names.filter(([name]) => has(name));
  if (!there.filter(([name]) => name !== 'cores').length) return null;
  const values = name => name === 'cores' ? x.map(() => DATA.hosts[currentHost].cores) : DATA.hosts[currentHost].series[name] || [];
  if (charts.has(title)) return charts.get(title).figure;
  const peak = there.filter(([name]) => name !== 'cores').map(([name, text]) => `${text} at most ${measure(Math.max(...finite(values(name)).filter(Number.isFinite), 0), unit)}`).join(', ');
  const chart = lineChart({title, axis: timeAxis, kind: 'time', x, unit, height: 128, gist: `${title}: ${peak}`, ...more,
    series: () => names.filter(([name]) => has(name)).map(([name, text, mark]) => ({name: text, color: mark, values: values(name), dash: /limit|there/.test(text) ? [5, 4] : null}))});
  charts.set(title, chart);
  hostWatchers.push(() => chart.refresh());
  return chart.figure;
}

function heatSection() {
  const bins = DATA.grid.bins, rows = [];
  for (const host of DATA.hosts) {
    const add = (list, r, label) => rows.push({label, group: host.name, at: i => list[r * bins + i], value: b => b === 255 ? 'unknown' : percent(b / 254) + ' busy'});
    for (let r = 0; r < host.cores; r++) add(host.busyBytes, r, 'core ' + r);
    for (let r = 0; r < host.devices; r++) add(host.deviceBytes, r, 'device ' + r);
  }
  const edges = Array.from({length: bins + 1}, (_, i) => i * DATA.grid.seconds);
  const always = DATA.hosts.reduce((a, t) => a + t.means.filter(m => m > 0.9).length, 0), all = DATA.hosts.reduce((a, t) => a + t.cores, 0);
  const map = heatmap({title: 'Every core' + (DATA.hosts.some(t => t.devices) ? ' and device' : '') + ', darker is busier', axis: timeAxis, kind: 'time', rows: () => rows, edges, legend: rampLegend('idle', 'busy'),
    rowHeight: n => Math.max(1, Math.min(18, 520 / n)), gist: `Heatmap of ${plural(all, 'core')} over time: ${always} of them above 90 % on average`});
  return section('All cores over time', null, map.figure, h('div', {class: 'tools'}, zoomTools(timeAxis, 'the time')));
}

function utilisationSection() {
  return section('How much of the machines was used', null, DATA.hosts.map(host => [
    DATA.hosts.length > 1 && h('h3', {}, host.name),
    h('div', {class: 'two'}, h('div', {}, spread(host, 'cores', 'Cores: share of the time at each utilisation'), host.devices > 0 && spread(host, 'devices', 'Devices: share of the time at each utilisation')),
      h('div', {}, host.phases.length > 0 && [h('h3', {}, 'By what the job was doing'), phaseTable(host)])),
    h('h3', {}, 'Percentiles over time'), percentileTable(host)]));
}
function spread(host, key, title) {
  const counts = host.histogram[key], edges = counts.map((_, i) => i / counts.length).concat(1), total = counts.reduce((a, b) => a + b, 0) || 1;
  return histogram({title, edges, counts, label: v => Math.round(100 * v) + ' %',
    gist: `${title} of ${host.name}: ${percent(counts[0] / total)} nearly idle, ${percent(counts[counts.length - 1] / total)} nearly full`}).figure;
}
const phaseTable = host => table([{name: 'Phase', value: r => r.name}, {name: 'Time', n: 1, value: r => r.seconds, show: r => seconds(r.seconds)},
  {name: 'CPU', n: 1, value: r => r.cpu, show: r => percent(r.cpu)}, {name: '', bar: r => r.cpu},
  ...(host.devices ? [{name: 'Devices', n: 1, value: r => r.device, show: r => percent(r.device)}] : [])], host.phases, {caption: 'Utilisation by phase'});
const percentileTable = host => table([{name: 'What', value: r => r.name}, ...['min', 'p50', 'p95', 'p99', 'max'].map(k => (
  {name: k, n: 1, value: r => r[k], show: r => measure(r[k], r.unit)}))], host.table, {sort: null, caption: 'Percentiles of ' + host.name});
