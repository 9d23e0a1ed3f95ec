'use strict';
// What a report shows, put together: its replay is in stage.js and motions.js, its plots in plots.js and sweep.js.
// Everything comes from the JSON in #data (apps/report_data.h); nothing from elsewhere.
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const {$} = Backdrive, {line, axis, options, scaleOf, fillTable, shortNumber} = BackdrivePlots;
const stored = data.motions || [], before = stored.find(m => m.name === 'before'), details = data.details || {};
const compared = data.compared || [];  // results beside the first, which is among them
let shown = null, sweep = null;
const read = k => BackdriveMotions.read(stored[k], data);

$('name').textContent = data.name;
document.title = data.name;
$('description').textContent = data.description;
$('log').textContent = data.log;
$('log-part').hidden = !data.log;
$('text').textContent = data.scene;
$('text-part').hidden = !data.scene;

// ---- motions: the one that plays, and others beside it

function player() {
  let current = Math.max(0, stored.findIndex(m => m.best));
  const first = read(current), time = new Backdrive.Time(first.times);
  const pale = before && Object.assign(first, {before: read(stored.indexOf(before)).poses});
  const stage = Backdrive.makeStage(time, pale || first);
  const others = stage && new BackdriveMotions.Others(stage, time);
  let plot = null, playing = first;
  const listed = stored.map((m, k) => k).filter(k => stored[k] !== before);
  // Of several results, those beside the one that plays.
  const isResult = motion => compared.some(one => one.name === motion.name);
  const results = k => listed.filter(other => other !== k && isResult(stored[other])).map(read);
  const beside = () => {
    const how = $('others').value, most = 64, every = Math.ceil((listed.length - 1) / most);
    const chosen = how === 'none' ? [] : listed.filter(k => k !== current).filter((_, k) => k % every === 0);
    if (others) others.set(chosen.map(read), how === 'beside');
  };
  const open = k => {
    current = k;
    const motion = playing = read(k);
    $('which').value = k;
    time.set(motion.times);
    if (stage) {
      stage.setBodies(motion);
      stage.setMotion(motion);
    }
    if (plot) plot.set(motion, results(k));
    time.show(time.frame);
    beside();
  };
  for (const k of listed) $('which').add(new Option(stored[k].name, k));
  $('which').value = current;
  $('which').onchange = () => choose(+$('which').value);
  $('others').onchange = beside;
  $('which-part').hidden = listed.length < 2;
  if (compared.length) $('others').value = 'pale';
  $('motion-part').hidden = !window.Chart || first.columns.length < 2;
  const addPlot = () => {
    if ($('motion-part').hidden) return;
    plot = new BackdrivePlots.MotionPlot(time, data.limits);
    plot.set(playing, results(current));
  };
  return {time, stage, get plot() { return plot; }, addPlot, open};
}

// The motion that a user picks; of a sweep its point, too.
function choose(k) {
  if (sweep && stored[k].point >= 0) sweep.select(stored[k].point);
  else shown.open(k);
}

// ---- the course of an optimisation

// Terms one on the other: parts of the loss, which are seen at the end as well as at the begin, or as they are.
function termsPlot(chart) {
  const {names, iterations: at, values} = details.terms || {names: [], iterations: [], values: []};
  const sums = values.map(row => row.reduce((sum, x) => sum + x, 0)), mixed = values.some(row => row.some(x => x < 0));
  const points = (k, parts) => at.map((x, i) => ({x, y: parts ? (sums[i] > 0 ? values[i][k] / sums[i] : 0) : values[i][k]}));
  if (mixed) $('terms-how').value = 'values';
  const parts = () => $('terms-how').value === 'parts';
  const sets = names.map((name, k) => Object.assign(line(name, points(k, parts()), k), {fill: k ? '-1' : 'origin'}));
  const plot = chart('terms', names.length > 1 ? sets : [], axis('', {stacked: true, max: parts() ? 1 : undefined}));
  $('terms-how').onchange = () => {
    sets.forEach((set, k) => { set.data = points(k, parts()); });
    plot.options.scales.y.max = parts() ? 1 : undefined;
    plot.update();
  };
}

function historyPlots() {
  const h = data.history;
  $('history').hidden = $('terms-part').hidden = $('health-part').hidden = !h;
  if (!h) return;
  const at = h.columns.indexOf('iteration');
  const of = name => h.columns.includes(name) ? h.rows.map(row => ({x: row[at], y: row[h.columns.indexOf(name)]})) : null;
  const iterations = () => axis('iteration', {ticks: {color: Backdrive.colour('--soft'), precision: 0}});
  const chart = (id, sets, y) => {
    $(id + '-part').hidden = !sets.length;
    window.backdriveHistory = Object.assign(window.backdriveHistory || {}, {[id]: sets});
    if (!sets.length) return null;
    return new Chart($(id), {type: 'line', data: {datasets: sets}, options: options(iterations(), y)});
  };
  const loss = [line(compared.length ? compared[0].name : 'loss', of('loss'), 0)], starts = compared.length ? [] : details.starts_over || [];
  compared.forEach((other, k) => {
    const {columns, rows} = other.history || {columns: [], rows: []}, [x, y] = ['iteration', 'loss'].map(name => columns.indexOf(name));
    if (k && y >= 0) loss.push(line(other.name, rows.map(row => ({x: row[x], y: row[y]})), k));
  });
  // Many starts are one kind of line, named once.
  starts.forEach((points, s) => {
    if (starts.length < 2) return;
    const set = Object.assign(line(starts.length > 5 ? 'starts' : 'start ' + s, points.map(([x, y]) => ({x, y})), s + 1), {borderWidth: 1, order: 1});
    if (starts.length > 5) set.borderColor = set.backgroundColor = Backdrive.colour('--ground');
    loss.push(set);
  });
  chart('loss', loss, axis('', {type: scaleOf(loss)}));
  termsPlot(chart);
  const health = [['gradient_norm', 'norm of the gradient'], ['slope_ratio', 'slope along it / its norm'], ['clipped_windows', 'clipped windows'],
    ['contacts_made', 'contacts made'], ['contacts_broken', 'contacts broken']]
    .map(([name, label], k) => [of(name), label, k]).filter(([points]) => points && points.some(p => p.y))
    .map(([points, label, k]) => line(label, points, k));
  chart('health', health, axis('', {type: scaleOf(health)}));
}

// Norm of the loss's gradient by the state, over the time of the motion.
function cotangentPlot(time) {
  const over = details.gradient_over_time;
  $('over-part').hidden = !over;
  if (!over) return;
  const sets = ['position', 'velocity', 'growth'].filter(name => over[name]).map((name, k) =>
    line(name === 'growth' ? 'growth a step, backwards' : 'gradient by ' + name, over.time.map((x, i) => ({x, y: over[name][i] || null})), k));
  const chart = BackdrivePlots.overTime($('over'), time, sets, axis('', {type: 'logarithmic'}));
  window.backdriveOver = chart;
}

// ---- words

function tables() {
  const limits = body => (data.limits || {})[body.joint + '/position'];
  $('bodies-part').hidden = !(data.bodies || []).length;
  fillTable($('bodies'), [['body', 'mass, kg', 'joint', 'type', 'limits', 'shapes']].concat((data.bodies || []).map((body, b) => [
    body.name, shortNumber(body.mass), body.joint, body.type,
    limits(body) ? '[' + limits(body).map(x => x === null ? 'none' : shortNumber(x)).join(', ') + ']' : '',
    data.shapes.filter(s => s.body === b).map(s => s.type).join(', ')])));
  const found = details.found || [], any = key => found.some(v => v[key] !== undefined && v[key] !== null && v[key] !== '');
  $('found-part').hidden = !found.length;
  const bounds = any('lower') || any('upper'), doubt = any('standard_error');
  fillTable($('found'), [['found', 'value'].concat(doubt ? ['± (1 σ)'] : [], ['unit'], bounds ? ['lower', 'upper'] : [], [''])].concat(found.map(v =>
    [v.name, shortNumber(v.value)].concat(doubt ? [shortNumber(v.standard_error)] : [], [v.unit], bounds ? [shortNumber(v.lower), shortNumber(v.upper)] : [], [v.note]))));
  $('found-words').textContent = doubt ? details.found_words || '' : '';
  const made = details.made_by || {};
  $('made-part').hidden = !details.made_by;
  fillTable($('made'), [['made by', '']].concat(Object.keys(made).map(key => [key.replace('_', ' '), String(made[key])])));
}

function checkTable() {
  const check = data.gradcheck;
  $('checks').hidden = !check;
  if (!check) return;
  const said = check.rows.filter(r => r.used && (!r.zero || !r.passed)), zero = check.rows.filter(r => r.used && r.zero && r.passed);
  $('check-words').textContent = check.words + (zero.length ? ' Zero, and not listed: ' + zero.length + ' rows.' : '');
  const failed = said.filter(r => !r.passed), rows = failed.concat(said.filter(r => r.passed));
  fillTable($('check'), [['gradient of', 'per', 'checked', 'adjoint', 'dual', 'tolerance', 'differences', 'tolerance', '', '']].concat(rows.map(r =>
    [r.name, r.unit, r.checked + '/' + r.numbers, ...[r.adjoint, r.dual.value, r.dual.tolerance, r.differences.value, r.differences.tolerance].map(shortNumber),
      r.passed ? 'pass' : 'FAIL', r.note])));
  [...$('check').rows].forEach((row, k) => { if (k > 0 && k <= failed.length) row.className = 'bad'; });
}

// Everything has its place before anything is drawn.
tables();
checkTable();
$('replay').hidden = !stored.length;
$('plots').hidden = !stored.length && !data.sweep;
$('sweep').hidden = $('sweep-more').hidden = !data.sweep;
$('history').hidden = !data.history;
$('course').hidden = !data.history && !details.gradient_over_time;
shown = stored.length ? player() : null;
if (shown) {
  const {time, stage} = shown;
  window.backdrive = stage && {
    scene: stage.scene, camera: stage.camera, controls: stage.controls, get links() { return stage.links; }, project: (b, point) => stage.project(b, point),
    draw: () => stage.draw(), show: k => time.show(k), showTime: t => time.showTime(t), frame: () => time.frame, get times() { return time.times; }, data,
    open: shown.open,
  };
  time.show(0);
  if (stage) stage.draw();
  if (compared.length) $('others').onchange();
  // …report.html#t=0.5 opens at that time.
  const asked = /(?:^#|&)t=([0-9.]+)/.exec(location.hash);
  if (asked) time.showTime(+asked[1]);
  if (/(?:^#|&)before/.test(location.hash) && before) $('before').click();
}
window.backdriveReady = performance.now();  // all but the plots

// Plots once the motion is to be seen; where a page is not seen itself, nobody tells of frames.
const afterFrame = then => {
  const once = () => { if (then) then(); then = null; };
  requestAnimationFrame(() => setTimeout(once));
  setTimeout(once, 500);
};
function plots() {
  if (window.Chart) {
    if (shown) shown.addPlot();
    historyPlots();
    if (shown) cotangentPlot(shown.time);
  }
  $('course').hidden = ['terms-part', 'health-part', 'over-part'].every(id => $(id).hidden);
  if (data.sweep) {
    sweep = new BackdriveSweep.Sweep(data, shown ? shown.open : () => {});
    const best = stored.find(m => m.best);
    sweep.select(best && best.point >= 0 ? best.point : 0);
  }
  // For tests.
  window.backdriveSweep = sweep;
  window.backdrivePlot = shown && shown.plot && shown.plot.chart;
}
window.backdriveWhole = new Promise(done => afterFrame(() => { plots(); done(); }));
})();
