'use strict';
// What a report shows, put together: its replay is in stage.js and motions.js, its plots in plots.js and sweep.js.
// Everything comes from the JSON in #data (apps/report_data.h); nothing from elsewhere.
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const {$} = Backdrive, {line, axis, options, scaleOf, fillTable, shortNumber} = BackdrivePlots;
const stored = data.motions || [], before = stored.find(m => m.name === 'before'), details = data.details || {};
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
  const plot = window.Chart && first.columns.length > 1 ? new BackdrivePlots.MotionPlot(time, data.limits) : null;
  const listed = stored.map((m, k) => k).filter(k => stored[k] !== before);
  const beside = () => {
    const how = $('others').value, most = 64, every = Math.ceil((listed.length - 1) / most);
    const chosen = how === 'none' ? [] : listed.filter(k => k !== current).filter((_, k) => k % every === 0);
    if (others) others.set(chosen.map(read), how === 'beside');
  };
  const open = k => {
    current = k;
    const motion = read(k);
    $('which').value = k;
    time.set(motion.times);
    if (stage) {
      stage.setBodies(motion);
      stage.setMotion(motion);
    }
    if (plot) plot.set(motion);
    time.show(time.frame);
    beside();
  };
  for (const k of listed) $('which').add(new Option(stored[k].name, k));
  $('which').value = current;
  $('which').onchange = () => choose(+$('which').value);
  $('others').onchange = beside;
  $('which-part').hidden = listed.length < 2;
  if (plot) plot.set(first);
  return {time, stage, plot, open};
}

// The motion that a user picks; of a sweep its point, too.
function choose(k) {
  if (sweep && stored[k].point >= 0) sweep.select(stored[k].point);
  else shown.open(k);
}

// ---- the course of an optimisation

function historyPlots() {
  const h = data.history;
  $('history').hidden = !h;
  if (!h) return;
  const at = h.columns.indexOf('iteration');
  const of = name => h.columns.includes(name) ? h.rows.map(row => ({x: row[at], y: row[h.columns.indexOf(name)]})) : null;
  const iterations = () => axis('iteration', {ticks: {color: Backdrive.colour('--soft'), precision: 0}});
  const chart = (id, sets, y) => {
    $(id + '-part').hidden = !sets.length;
    if (sets.length) new Chart($(id), {type: 'line', data: {datasets: sets}, options: options(iterations(), y)});
    window.backdriveHistory = Object.assign(window.backdriveHistory || {}, {[id]: sets});
  };
  const loss = [line('loss', of('loss'), 0)], starts = details.starts_over || [];
  starts.forEach((points, s) => { if (starts.length > 1) loss.push(Object.assign(line('start ' + s, points.map(([x, y]) => ({x, y})), s + 1), {borderWidth: 1})); });
  chart('loss', loss, axis('', {type: scaleOf(loss)}));
  const terms = details.terms ? details.terms.names.map((name, k) => Object.assign(
    line(name, details.terms.iterations.map((x, i) => ({x, y: details.terms.values[i][k]})), k), {fill: k ? '-1' : 'origin'})) : [];
  chart('terms', terms.length > 1 ? terms : [], axis('', {stacked: true}));
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
  $('check-words').textContent = check.words;
  const failed = check.rows.filter(r => !r.passed), rows = failed.concat(check.rows.filter(r => r.passed));
  fillTable($('check'), [['gradient of', 'per', 'checked', 'adjoint', 'dual', 'error', 'tolerance', 'differences', 'error', 'tolerance', '', '']].concat(rows.map(r =>
    [r.name, r.unit, r.count + '/' + r.total, ...[r.adjoint, r.dual, r.dual_error, r.dual_tolerance, r.differences, r.differences_error,
      r.differences_tolerance].map(shortNumber), r.passed ? 'pass' : 'FAIL', r.note])));
  [...$('check').rows].forEach((row, k) => { if (k > 0 && k <= failed.length) row.className = 'bad'; });
}

tables();
checkTable();
$('replay').hidden = $('plots').hidden = !stored.length;
if (window.Chart) historyPlots();
shown = stored.length ? player() : null;
$('motion-part').hidden = !shown || !shown.plot;
if (window.Chart && shown) cotangentPlot(shown.time);
$('sweep').hidden = $('sweep-more').hidden = !data.sweep;
if (data.sweep) {
  sweep = new BackdriveSweep.Sweep(data, shown ? shown.open : () => {});
  const best = stored.find(m => m.best);
  sweep.select(best && best.point >= 0 ? best.point : 0);
}
// For tests.
window.backdriveSweep = sweep;
if (shown) {
  const {time, stage} = shown;
  window.backdrivePlot = shown.plot && shown.plot.chart;
  window.backdrive = stage && {
    scene: stage.scene, camera: stage.camera, controls: stage.controls, get links() { return stage.links; }, project: (b, point) => stage.project(b, point),
    draw: () => stage.draw(), show: k => time.show(k), showTime: t => time.showTime(t), frame: () => time.frame, get times() { return time.times; }, data,
    open: shown.open,
  };
  time.show(0);
  // …report.html#t=0.5 opens at that time.
  const asked = /(?:^#|&)t=([0-9.]+)/.exec(location.hash);
  if (asked) time.showTime(+asked[1]);
  if (/(?:^#|&)before/.test(location.hash) && before) $('before').click();
}
})();
