// Ranks beside one another, operations, exchanges, memory, and the facts of the run.

function rankSection(ranks) {
  const edges = [...ranks.first, ranks.last[ranks.last.length - 1] + 1];
  const sets = {work: 'own work', wait: 'waiting for the others'};
  let which = 'work';
  const bytesOf = {work: matrix(ranks.work), wait: matrix(ranks.wait)}, scale = {work: ranks.work_scale, wait: ranks.wait_scale};
  const bins = ranks.first.length;
  const rows = Array.from({length: ranks.count}, (_, r) => ({label: 'rank ' + r, group: ranks.each[r].host || '', at: i => bytesOf[which][r * bins + i],
    value: b => b === 255 ? 'unknown' : (b === 254 ? 'at least ' : '') + seconds(scale[which][0] + b / 254 * (scale[which][1] - scale[which][0])) + ' ' + sets[which]}));
  const slow = ranks.each.slice().sort((a, b) => b.work_s - a.work_s)[0];
  const legend = () => rampLegend(seconds(scale[which][0]), seconds(scale[which][1]));
  const map = heatmap({title: 'Ranks by step, darker took longer', axis: stepAxis, kind: 'step', rows: () => rows, edges, legend: legend(), rowHeight: n => Math.max(2, Math.min(22, 420 / n)),
    gist: `Heatmap of ${plural(ranks.count, 'rank')} by step: most own work on rank ${slow.rank}, ${seconds(slow.work_s)} a step`});
  const select = h('select', {'aria-label': 'What the heatmap shows', onchange: e => { which = e.target.value; map.head.lastChild.replaceChildren(...legend()); map.draw(); }},
    Object.entries(sets).map(([key, text]) => h('option', {value: key}, text)));
  return section('Ranks', 'Own work is the step without waiting for others. The rank with most of it is the one the others wait for.',
    h('div', {class: 'tools'}, h('label', {}, 'Show ', select)), map.figure,
    table([{name: 'Rank', n: 1, value: r => r.rank}, {name: 'Machine', value: r => r.host || ''}, {name: 'Own work a step', n: 1, value: r => r.work_s, show: r => seconds(r.work_s)},
      {name: '', bar: r => r.work_s / slow.work_s}, {name: 'Waits', n: 1, value: r => r.wait_s, show: r => seconds(r.wait_s)}, {name: 'Data', n: 1, value: r => r.data_s, show: r => seconds(r.data_s)},
      {name: 'Slowest in', n: 1, value: r => r.slowest, show: r => percent(r.slowest)}], ranks.each, {sort: null, caption: 'Ranks'}));
}

function operationSection(list, ranks) {
  const most = Math.max(...list.map(o => o.seconds));
  const peaks = list.some(o => known(o.of_peak));
  return section('Top operations', `Wall time of the operations inside the steps that were recorded${ranks > 1 ? `, mean over ${ranks} ranks` : ''}.`,
    table([{name: 'Operation', value: o => o.name, show: o => h('code', {}, o.name), wrap: true}, {name: 'Phase', value: o => o.phase},
      {name: 'Shape', value: o => o.shape}, {name: 'Type', value: o => o.dtype}, {name: 'Calls', n: 1, value: o => o.calls, show: o => whole(o.calls)},
      {name: 'Time', n: 1, value: o => o.seconds, show: o => seconds(o.seconds)}, {name: 'Of the steps', n: 1, value: o => o.share, show: o => percent(o.share)},
      {name: '', bar: o => o.seconds / most}, {name: 'Each', n: 1, value: o => o.seconds / o.calls, show: o => seconds(o.seconds / o.calls)},
      ...(list.some(o => known(o.flops_per_s)) ? [{name: 'GFLOP/s', n: 1, value: o => o.flops_per_s, show: o => known(o.flops_per_s) ? plain(o.flops_per_s / 1e9) : ''}] : []),
      ...(peaks ? [{name: 'Of peak', n: 1, value: o => o.of_peak, show: o => known(o.of_peak) ? percent(o.of_peak) : ''}] : [])],
    list, {sort: 5, caption: 'Top operations'}));
}

const communicationSection = rows => section('Communication', null, table([{name: 'What', value: r => r[0]}, {name: 'Value', n: 1, value: r => measure(r[1], r[2])}], rows, {sort: null, caption: 'Communication'}));

function memorySection(memory) {
  const most = Math.max(...memory.rows.map(r => Math.max(r.predicted || 0, r.most || 0)), 1);
  return section('Memory', `Of a rank: peak ${bytes(memory.peak)}, predicted ${bytes(memory.predicted)}, available ${bytes(memory.available)}.`,
    table([{name: 'What it holds', value: r => r.name}, {name: 'Predicted', n: 1, value: r => r.predicted, show: r => bytes(r.predicted)}, {name: 'Really', n: 1, value: r => r.most, show: r => bytes(r.most)},
      {name: '', bar: r => (known(r.most) ? r.most : r.predicted) / most}], memory.rows, {sort: null, caption: 'Memory of a rank'}));
}

const factsSection = () => section('Settings and machine', null, h('div', {class: 'two'},
  h('div', {}, h('h3', {}, 'Machine'), pairs(DATA.machine, 'Machine')),
  h('div', {}, h('h3', {}, 'Settings of this run'), DATA.options.length ? pairs(DATA.options, 'Settings') : h('p', {}, 'No job.yaml was there.'))));

const missingSection = list => section('What was not there', 'Parts of this report that could not be made, and why.', pairs(list, 'Missing'));
