// Puts the page together in the order in which it is read.

function section(title, note, ...content) {
  const id = slug(title);
  document.getElementById('nav').append(h('a', {href: '#' + id, onclick: e => { e.preventDefault(); document.getElementById(id).scrollIntoView(); }}, title));
  return h('section', {id, 'aria-label': title}, h('h2', {}, title), note && h('p', {}, note), content);
}

function sections() {
  const d = DATA, hosts = d.hosts.length > 0;
  return [
    () => headSection(d.run), () => findingsSection(), () => d.ledger && ledgerSection(d.ledger), () => learningSection(d.steps, d.evals),
    () => d.steps && stepSection(d.steps), () => hosts && machineSection(), () => hosts && heatSection(), () => hosts && utilisationSection(),
    () => d.ranks && rankSection(d.ranks), () => d.operations.length > 0 && operationSection(d.operations, d.operation_ranks),
    () => d.communication.length > 0 && communicationSection(d.communication), () => d.memory && memorySection(d.memory),
    factsSection, () => d.missing.length > 0 && missingSection(d.missing), footer];
}
const footer = () => h('footer', {}, `Written ${utc(DATA.written)} by tagine ${DATA.version} from ${DATA.run.path}. This file needs no network and no other file.`);

function start() {
  applyTheme();
  document.getElementById('theme').addEventListener('click', () => {
    const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    choose('theme', next);
    applyTheme(next);
    drawAll();
  });
  system.addEventListener('change', () => { applyTheme(); drawAll(); });
  if (DATA.steps) stepAxis = new Axis('steps', DATA.steps.first[0], DATA.steps.last[DATA.steps.last.length - 1], 4);
  if (DATA.grid) timeAxis = new Axis('time', 0, DATA.grid.bins * DATA.grid.seconds, Math.min(2, 4 * DATA.grid.seconds));
  prepareHosts();
  for (const make of sections()) {
    const made = make();
    if (made) document.getElementById('main').append(made);
  }
  drawAll();
  window.addEventListener('resize', drawAll);
  forPaper();
}

// On paper: light, and as wide as the paper is, whatever the window was.
function forPaper() {
  let theme = null;
  const before = () => {
    if (paper) return;
    theme = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = 'light';
    paper = true;
    drawAll();
  };
  const after = () => {
    if (!paper) return;
    document.documentElement.dataset.theme = theme;
    paper = false;
    drawAll();
  };
  window.addEventListener('beforeprint', before);
  window.addEventListener('afterprint', after);
}

start();
if (CHECK) check();
