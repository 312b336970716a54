// What ran and how it ended, and what was found: the part that is read first.

const STATES = {
  done: ['Done', 'good'], running: ['Running', 'live'], failed: ['Failed', 'bad'], stopped: ['Stopped', 'soft'],
  lost: ['No end written', 'bad'], unknown: ['End not known', 'soft'],
};

function headSection(run) {
  const [word, mood] = STATES[run.state] || STATES.unknown;
  const names = [run.command, run.model].filter(Boolean);
  const when = [run.begin && 'from ' + utc(run.begin), run.end && !DATA.live && 'to ' + utc(run.end), run.path].filter(Boolean);
  return h('section', {class: 'head', id: 'summary'},
    h('div', {class: 'what'}, h('h1', {}, names.length ? names.join(' · ') : run.path), h('span', {class: 'pill ' + mood}, word)),
    h('p', {class: 'when'}, when.join(' · ')),
    run.failure && h('p', {class: 'reason'}, run.failure, known(run.exit) && ` (exit code ${run.exit})`),
    h('dl', {class: 'tiles'}, tiles(run)),
    DATA.live && liveLine());
}

function tiles(run) {
  const tile = (name, value, more) => value !== null && h('div', {class: 'tile'}, h('dt', {}, name), h('dd', {}, value, more && h('small', {}, more)));
  const epochs = known(run.epochs) ? `${whole(run.epochs_done)} of ${plural(run.epochs, 'epoch')}` : null;
  const place = [run.hosts > 1 && plural(run.hosts, 'machine'), known(run.threads) && plural(run.threads, 'thread') + ' each',
    known(run.workers) && plural(run.workers, 'loader worker')].filter(Boolean).join(', ');
  return [
    tile(DATA.live ? 'Running for' : 'Ran for', known(run.seconds) ? seconds(run.seconds) : 'unknown', epochs),
    known(run.images_per_s) && tile('Images per second', plain(run.images_per_s), 'median step ' + seconds(run.median_step_s)),
    known(run.best_top1) && tile('Best top-1', plain(run.best_top1) + ' %', `after epoch ${run.best_epoch}, last ${plain(run.last_top1)} %`),
    run.steps > 0 && tile('Steps', whole(run.steps), known(run.batch) && `of ${plain(run.batch, 6)} images`),
    known(run.ranks) && tile('Ranks', whole(run.ranks), place),
    DATA.findings && tile('Findings', whole(DATA.findings.length), findingCounts()),
  ];
}

function findingCounts() {
  const count = s => DATA.findings.filter(f => f.severity === s).length;
  const parts = ['serious', 'warning', 'note'].map(s => count(s) && `${count(s)} ${s}`).filter(Boolean);
  return parts.length ? parts.join(', ') : 'nothing stands out';
}

// A live report is written anew while the job runs; the page loads it again unless the reader says not to.
function liveLine() {
  let timer = 0;
  const button = h('button', {type: 'button', 'aria-pressed': 'false', onclick: () => set(timer !== 0)}, 'Pause');
  function set(paused) {
    clearTimeout(timer);
    timer = paused ? 0 : setTimeout(() => location.reload(), 1000 * DATA.refresh_s);
    button.textContent = paused ? 'Go on' : 'Pause';
    choose('pause', paused ? '1' : null);
  }
  set(chosen.has('pause') || CHECK);
  return h('div', {class: 'tools'}, h('span', {}, `Written ${utc(DATA.written)}; looks for a newer one every ${plain(DATA.refresh_s)} s.`), button);
}

function findingsSection() {
  const list = DATA.findings, rules = DATA.rules || [];
  const quiet = rules.filter(r => r.outcome === 'quiet').length, lacking = rules.filter(r => r.outcome === 'lacks');
  return section('Findings', list.length ? null : `No rule found anything to change: ${quiet} looked and saw nothing, ${lacking.length} lacked what they read.`,
    list.map(findingCard),
    rules.length > 0 && h('details', {}, h('summary', {}, `All ${rules.length} rules: ${rules.length - quiet - lacking.length} found something, ${quiet} nothing, ${lacking.length} could not look`),
      table([{name: 'Rule', value: r => r.name, show: r => h('code', {}, r.name)}, {name: 'Looks for', value: r => r.asks, wrap: true},
        {name: 'Outcome', value: r => r.outcome, show: r => r.outcome === 'lacks' ? 'not there: ' + r.lacks : r.outcome === 'fired' ? 'found' : 'nothing'}],
      rules, {sort: null, caption: 'Rules'})));
}

function findingCard(f) {
  const where = [f.rule, f.host && 'machine ' + f.host, f.rank >= 0 && 'rank ' + f.rank].filter(Boolean).join(' · ');
  return h('article', {class: 'finding ' + f.severity},
    h('div', {class: 'tag'}, f.severity[0].toUpperCase() + f.severity.slice(1), ' ', h('span', {}, where)),
    h('h3', {}, f.title),
    h('div', {class: 'body'},
      h('div', {}, f.evidence.length > 0 && table([{name: 'Evidence', value: e => e[0], wrap: true}, {name: 'Value', n: 1, value: e => measure(e[1], e[2])}], f.evidence, {caption: 'Evidence'}), moments(f)),
      h('div', {}, f.cause && h('p', {}, f.cause), f.advice && h('p', {}, f.advice), change(f), gain(f))));
}

const change = f => f.option && h('div', {class: 'change'}, h('code', {}, '--' + f.option + ' ', h('s', {}, f.old || 'unset'), ' → ', h('b', {}, f.new)));

function gain(f) {
  if (!known(f.step_s) || !known(f.predicted_s)) return null;
  const most = Math.max(f.step_s, f.predicted_s), faster = f.step_s / f.predicted_s;
  const bar = (s, name) => h('i', {class: name, style: {width: 100 * s / most + '%'}});
  return [h('div', {class: 'gain'}, h('span', {}, 'Step now'), bar(f.step_s, ''), h('span', {class: 'n'}, seconds(f.step_s)),
    h('span', {}, 'Predicted'), bar(f.predicted_s, 'new'), h('span', {class: 'n'}, seconds(f.predicted_s))),
  h('p', {class: 'hint'}, `${plain(faster)} times the images a second`, known(f.confidence) && `; sure to ${Math.round(100 * f.confidence)} %`)];
}

// Links to where the charts show it.
function moments(f) {
  const links = [];
  if (known(f.begin) && known(f.end) && DATA.hosts.length)
    links.push(link(`See the machines, ${clock(f.begin)} to ${clock(f.end)}`, '#machines', () => {
      if (f.host) pickHost(f.host);
      timeAxis.set(f.begin - 0.15 * (f.end - f.begin), f.end + 0.15 * (f.end - f.begin));
    }));
  if (f.last_step > 0 && DATA.steps)
    links.push(link(`See steps ${whole(f.first_step)} to ${whole(f.last_step)}`, '#step-time', () => {
      const room = Math.max(3, 0.15 * (f.last_step - f.first_step));
      stepAxis.set(f.first_step - room, f.last_step + room);
    }));
  return links.length > 0 && h('div', {class: 'links'}, links);
}
const link = (text, where, act) => h('a', {href: where, onclick: e => {
  e.preventDefault();
  act();
  const target = document.querySelector(where);
  target.scrollIntoView({behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth'});
  const canvas = target.querySelector('canvas');
  if (canvas) canvas.focus({preventScroll: true});
}}, text);
