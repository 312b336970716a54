// Where the wall time went, how the model learned, and what steps took.

const PHASES = [['t_data', 'waiting for data', 'data'], ['t_teacher', 'teacher', 'teacher'], ['t_forward', 'forward and loss', 'forward'],
  ['t_backward', 'backward', 'backward'], ['t_reduce', 'waiting for ranks', 'reduce'], ['t_optimizer', 'optimizer', 'optimizer'], ['t_other', 'other', 'other']];

let stepAxis = null;

function ledgerSection(ledger) {
  const rows = ledger.rows.filter(r => r.seconds > 0);
  const sum = rows.reduce((a, r) => a + r.seconds, 0);
  const gist = rows.slice().sort((a, b) => b.seconds - a.seconds).slice(0, 4).map(r => `${r.name} ${percent(r.seconds / sum)}`).join(', ');
  return section('Where the time went', `Every second of ${seconds(ledger.wall_s)} belongs to one row.`,
    h('div', {class: 'stack', role: 'img', 'aria-label': 'Shares of the wall time: ' + gist},
      rows.map(r => h('i', {title: `${r.name}: ${seconds(r.seconds)}, ${percent(r.seconds / sum)}`, style: {background: `var(--${r.color})`, width: 100 * r.seconds / sum + '%'}}))),
    table([{name: 'What', value: r => r.name, show: r => [swatch(r.color), r.name]}, {name: 'Time', n: 1, value: r => r.seconds, show: r => seconds(r.seconds)},
      {name: 'Share', n: 1, value: r => r.seconds, show: r => percent(r.seconds / sum)}, {name: '', bar: r => r.seconds / Math.max(...rows.map(x => x.seconds))},
      ...(rows.some(r => r.note) ? [{name: 'Note', value: r => r.note || '', wrap: true}] : [])],
    rows, {caption: 'Where the time went', total: ['All of it', seconds(sum), percent(1)]}));
}

const middles = s => s.first.map((f, i) => (f + s.last[i]) / 2);
const finite = list => list.filter(known);

function learningSection(steps, evals) {
  const out = [];
  if (steps) {
    const x = middles(steps), kd = finite(steps.loss_kd).length > 0;
    const band = steps.size > 1 ? {low: steps.loss_low, high: steps.loss_high} : {};
    const series = [{name: 'loss', color: 'l0', values: steps.loss, width: 1.8, ...band}];
    if (kd) series.push({name: 'labels', color: 'l1', values: steps.loss_task}, {name: 'teacher', color: 'l4', values: steps.loss_kd});
    if (evals && finite(evals.loss).length && finite(evals.step).length)
      series.push({name: 'validation', color: 'l3', values: onto(x, evals.step, evals.loss)});
    const l = finite(steps.loss);
    out.push(lineChart({title: 'Loss by step', axis: stepAxis, kind: 'step', x, series: () => series.map(bridge), unit: '',
      gist: `Loss by step: from ${plain(l[0])} to ${plain(l[l.length - 1])}, least ${plain(Math.min(...l))}`}).figure);
    if (finite(steps.grad_norm).length)
      out.push(h('div', {class: 'two'}, small('Gradient norm', steps.grad_norm, 'l5', x), small('Learning rate', steps.lr, 'l2', x)));
  }
  if (evals && evals.epoch.length) out.push(accuracyChart(evals).figure);
  return out.length ? section('Loss and accuracy', null, out) : null;
}

const small = (title, values, mark, x) => lineChart({title, axis: stepAxis, kind: 'step', x, height: 120, unit: '', legend: false,
  series: () => [{name: title, color: mark, values}], gist: `${title} by step: from ${plain(finite(values)[0])} to ${plain(finite(values).slice(-1)[0])}`}).figure;

// Values at few steps, put where the chart's x come nearest; the line goes from one to the next.
function onto(x, at, values) {
  const out = new Array(x.length).fill(null);
  at.forEach((s, i) => { if (known(s)) out[nearest(x, s)] = values[i]; });
  return out;
}
function bridge(s) {
  if (s.name !== 'validation' || s.bridged) return s;
  let last = -1;
  s.values.forEach((v, i) => {
    if (!known(v)) return;
    for (let k = last + 1; last >= 0 && k < i; k++) s.values[k] = s.values[last] + (v - s.values[last]) * (k - last) / (i - last);
    last = i;
  });
  s.bridged = true;
  return s;
}

function accuracyChart(evals) {
  const epochs = new Axis('epochs', Math.min(...evals.epoch) - 0.2, Math.max(...evals.epoch) + 0.2, 1);
  const best = Math.max(...finite(evals.top1), 0);
  return lineChart({title: 'Validation accuracy by epoch', axis: epochs, kind: 'step', x: evals.epoch, unit: '%', height: 150,
    series: () => [{name: 'top-1', color: 'l0', values: evals.top1, width: 1.8}, {name: 'top-5', color: 'l2', values: evals.top5}],
    gist: `Validation accuracy: best top-1 ${plain(best)} % in ${plural(evals.epoch.length, 'evaluation')}`});
}

function stepSection(steps) {
  const x = middles(steps), used = PHASES.filter(([key]) => steps[key].some(v => v > 0));
  const series = used.map(([key, name, mark]) => ({name, color: mark, values: steps[key]}));
  const sums = used.map(([key, name]) => [name, finite(steps[key]).reduce((a, b) => a + b, 0)]).sort((a, b) => b[1] - a[1]);
  const total = sums.reduce((a, s) => a + s[1], 0) || 1;
  const stack = lineChart({title: 'Time of a step by phase', axis: stepAxis, kind: 'step', x, series: () => series, unit: 's', stack: true, height: 210,
    gist: 'Time of a step by phase: ' + sums.slice(0, 4).map(s => `${s[0]} ${percent(s[1] / total)}`).join(', ')});
  const range = steps.size > 1 && lineChart({title: 'Shortest, mean and longest step', axis: stepAxis, kind: 'step', x, unit: 's', height: 120,
    series: () => [{name: `mean of ${steps.size} steps, with the shortest and the longest`, color: 'l0', values: steps.t_step, low: steps.t_low, high: steps.t_high}],
    gist: `Step time: median ${seconds(steps.median_s)}, 95 % below ${seconds(steps.p95_s)}`}).figure;
  const few = steps.size > 1 ? ` Each point is the mean of ${plural(steps.size, 'step')}.` : '';
  return section('Step time', `Half of the steps took less than ${seconds(steps.median_s)}, 95 % less than ${seconds(steps.p95_s)}, the longest ${seconds(steps.max_s)}.` + few,
    stack.figure, range, h('div', {class: 'tools'}, zoomTools(stepAxis, 'the steps')), gestureHint(),
    h('div', {class: 'two'}, h('div', {}, stepHistogram(steps).figure), h('div', {}, outlierTable(steps))));
}

const gestureHint = () => h('p', {class: 'hint'}, 'Drag over a chart to choose a range, with Shift to move it; click it and turn the wheel, or pinch, to zoom; double-click or Escape for all. ' +
  'By keyboard: + and −, arrows for the reading mark, Shift and arrows to move. Charts of one section move together.');

const stepHistogram = steps => histogram({title: 'How long steps took', edges: steps.histogram.edges, counts: steps.histogram.counts, label: seconds,
  gist: `Histogram of ${plural(steps.count, 'step')}: median ${seconds(steps.median_s)}, 95 % below ${seconds(steps.p95_s)}`});

function outlierTable(steps) {
  if (!steps.outliers.length) return [h('h3', {}, 'Outliers'), h('p', {class: 'hint'}, 'No step took more than twice the median of those around it.')];
  const show = o => h('a', {href: '#step-time', onclick: e => { e.preventDefault(); stepAxis.set(o.step - 20 * steps.size, o.step + 20 * steps.size); }}, whole(o.step));
  return [h('h3', {}, 'Outliers, longest first' + (steps.outlier_count > steps.outliers.length ? ` (${steps.outliers.length} of ${whole(steps.outlier_count)})` : '')),
    table([{name: 'Step', n: 1, value: o => o.step, show}, {name: 'Took', n: 1, value: o => o.seconds, show: o => seconds(o.seconds)},
      {name: 'Median of those around', n: 1, value: o => o.usual, show: o => seconds(o.usual)}, {name: 'Most went to', value: o => phaseName(o.phase)}],
    steps.outliers, {sort: 1, caption: 'Steps that took more than twice the usual time'})];
}
const phaseName = key => (PHASES.find(p => p[0] === key) || [0, key])[1];
