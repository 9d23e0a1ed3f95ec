'use strict';
// The page of `simctl view`: sliders that have the scene simulated anew, the loss and its gradient; of `optimize --view`:
// the best motion so far and how the loss falls. It speaks to the server that it came from, and to nobody else.
(async () => {
const {$} = Backdrive, {line, axis, options} = BackdrivePlots;

$('which-part').hidden = true;
const scene = await (await fetch('scene')).json(), robots = await (await fetch('looks')).json();
$('name').textContent = scene.name;
document.title = scene.name;
$('description').textContent = scene.description;

// ---- what is shown: in the order in which answers come

let time = null, stage = null, first = null, shapes = '', looks = null;
function showMotion(text, newLooks) {
  if (newLooks) looks = Object.assign({looks: robots}, newLooks);
  const motion = BackdriveMotions.read(text, looks);
  // The first motion stays as a ghost, where the others last as long.
  if (first && first.length === motion.poses.length) motion.before = first;
  first = first || motion.poses;
  if (!time) {
    time = new Backdrive.Time(motion.times);
    stage = Backdrive.makeStage(time, motion);
    // …#t=0.5 opens at that time, and stands still.
    const asked = /(?:^#|&)t=([0-9.]+)/.exec(location.hash);
    asked ? time.showTime(+asked[1]) : time.show(0);
    if (!asked && !matchMedia('(prefers-reduced-motion: reduce)').matches) time.play(true);
    return;
  }
  time.set(motion.times);
  if (stage) {
    if (newLooks) stage.setBodies(looks);
    stage.setMotion(motion);
  }
  time.show(time.frame);
}
function showError(text) {
  $('error').hidden = !text;
  $('error').textContent = text || '';
}
const digits = x => x === null || x === undefined ? 'not finite' : String(+x.toPrecision(6));
function showLoss(answer) {
  $('loss').textContent = 'loss' in answer ? digits(answer.loss) : '';
  const table = $('terms');
  table.textContent = '';
  for (const [name, value] of answer.terms || []) {
    const row = table.insertRow();
    row.insertCell().textContent = name;
    row.insertCell().textContent = digits(value);
  }
}

// ---- sliders

const known = new Map((scene.sliders || []).map(s => [s.path, s])), shown = new Map();
const values = () => Object.fromEntries([...shown].filter(([, s]) => s.moved || s.known.value !== null).map(([path, s]) => [path, s.value]));

function element(tag, properties, parent) {
  const e = Object.assign(document.createElement(tag), properties);
  if (parent) parent.appendChild(e);
  return e;
}
function addSlider(path) {
  const spec = known.get(path);
  if (!spec || shown.has(path)) return;
  if (shown.size >= scene.most) { showError('at most ' + scene.most + ' sliders'); return; }
  const box = element('div', {className: 'slider'}, $('sliders')), head = element('div', {className: 'path'}, box);
  element('span', {textContent: path, title: spec.words}, head);
  const slider = {known: spec, value: spec.value === null ? spec.upper : spec.value, moved: false, lower: spec.lower, upper: spec.upper, box};
  element('button', {textContent: '×', title: 'take it away', onclick: () => { shown.delete(path); box.remove(); changed(); }}, head);
  const row = element('div', {className: 'row'}, box);
  const end = name => element('input', {type: 'number', step: 'any', value: slider[name], title: name + ' end', onchange: e => {
    if (Number.isFinite(e.target.valueAsNumber)) slider[name] = e.target.valueAsNumber;
    place();
  }}, row);
  end('lower');
  const track = element('div', {className: 'track'}, row);
  slider.arrow = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  track.appendChild(slider.arrow);
  const range = element('input', {type: 'range', min: 0, max: 1000, step: 1}, track);
  range.setAttribute('aria-label', path);
  end('upper');
  const below = element('div', {className: 'below'}, box);
  const exact = element('input', {type: 'number', step: 'any', className: 'value'}, below);
  exact.setAttribute('aria-label', path + ' value');
  element('span', {textContent: spec.unit}, below);
  slider.slope = element('span', {className: 'slope'}, below);
  const place = () => {
    range.value = Math.round((slider.value - slider.lower) / (slider.upper - slider.lower) * 1000);
    exact.value = spec.value === null && !slider.moved ? '' : slider.value;
    exact.placeholder = 'none';
    drawArrow(slider);
  };
  slider.set = (value, moved) => { slider.value = value; slider.moved = moved; place(); };
  range.oninput = () => {
    slider.set(slider.lower + (slider.upper - slider.lower) * range.value / 1000, true);
    changed();
  };
  exact.onchange = () => { if (Number.isFinite(exact.valueAsNumber)) { slider.set(exact.valueAsNumber, true); changed(); } };
  shown.set(path, slider);
  place();
}

// The way the loss falls: as long as the loss changes over the slider's range, against the others.
function drawArrow(slider) {
  slider.arrow.textContent = '';
  const share = slider.share || 0;
  if (!share) return;
  const from = 100 * (slider.value - slider.lower) / (slider.upper - slider.lower), to = Math.max(-10, Math.min(110, from + 45 * share));
  const add = (tag, attributes) => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
    slider.arrow.appendChild(e);
  };
  const back = to > from ? -5 : 5;
  add('line', {x1: from + '%', x2: to + '%', y1: 7, y2: 7});
  const tip = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  tip.setAttribute('x', to + '%');
  tip.setAttribute('overflow', 'visible');
  const head = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  head.setAttribute('d', `M ${back} 2.5 L 0 7 L ${back} 11.5`);
  tip.appendChild(head);
  slider.arrow.appendChild(tip);
}
function showGradient(answer) {
  let most = 0;
  const over = (path, s) => (answer.gradient[path] || 0) * (s.upper - s.lower);
  for (const [path, s] of shown) most = Math.max(most, Math.abs(over(path, s)));
  for (const [path, s] of shown) {
    const slope = answer.gradient[path], why = answer.why && answer.why[path];
    s.gradient = slope;
    s.share = most > 0 && slope ? -over(path, s) / most : 0;
    s.slope.textContent = slope === undefined ? '' : '∂loss ' + digits(slope) + (slope === 0 ? (why ? ': ' + why : '') : '');
    drawArrow(s);
  }
}

// ---- asking: the newest request wins, the gradient comes once nothing moves

let asked = 0, resting = 0;
async function ask(wanted) {
  const own = ++asked;
  $('state').textContent = wanted === 'motion' ? 'simulating …' : 'gradient …';
  let answer;
  try {
    const reply = await fetch('ask', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({wanted, shapes, values: values()})});
    answer = await reply.json();
  } catch (error) {
    if (own === asked) { $('state').textContent = ''; showError('simctl has ended, or cannot be reached.'); }
    return;
  }
  if (own !== asked || answer.superseded) return;
  $('state').textContent = '';
  showError(answer.error);
  if (answer.motion) {
    if (answer.shapes) shapes = answer.shapes;
    showMotion(answer.motion, answer.looks);
    showLoss(answer);
    window.backdriveView.motions += 1;
    window.backdriveView.last = answer;
  }
  if (wanted === 'motion' && !answer.error && scene.loss && shown.size) {
    clearTimeout(resting);
    resting = setTimeout(() => ask('gradient'), 120);
  }
  if (answer.gradient) { showGradient(answer); window.backdriveView.gradient = answer.gradient; }
}
function changed() {
  clearTimeout(resting);
  for (const s of shown.values()) { s.share = 0; s.slope.textContent = ''; drawArrow(s); }
  ask('motion');
}

function search() {
  const words = $('search').value.toLowerCase().split(/\s+/).filter(Boolean), found = $('found');
  found.textContent = '';
  if (!words.length) return;
  let count = 0;
  for (const [path, spec] of known) {
    const text = (path + ' ' + spec.words).toLowerCase();
    if (shown.has(path) || !words.every(w => text.includes(w))) continue;
    if (++count > 60) { element('span', {textContent: '…'}, found); break; }
    element('button', {textContent: path, title: spec.words, onclick: () => { addSlider(path); search(); changed(); }}, found);
  }
  if (!count) element('span', {textContent: 'nothing of that name'}, found);
}

async function startView() {
  $('loss-part').hidden = !scene.loss;
  $('search').oninput = search;
  $('search').onkeydown = e => { const button = $('found').querySelector('button'); if (e.key === 'Enter' && button) button.click(); };
  $('reset').onclick = () => { for (const s of shown.values()) s.set(s.known.value === null ? s.known.upper : s.known.value, false); changed(); };
  [...known.values()].filter(s => s.position).slice(0, 24).forEach(s => addSlider(s.path));
  // …#add=gravity/z,joints/hinge/damping opens with these.
  const more = /(?:^#|&)add=([^&]+)/.exec(location.hash);
  if (more) decodeURIComponent(more[1]).split(',').forEach(addSlider);
  const result = await fetch('result');
  if (result.status === 200) {
    const motion = await result.json();
    showMotion(motion.motion, motion);
  }
  ask('motion');
}

// ---- an optimisation while it runs

async function watchOptimisation() {
  $('sliders-part').hidden = true;
  $('history-part').hidden = false;
  const chart = window.Chart && new Chart($('history'), {type: 'line', data: {datasets: ['loss', 'gradient norm'].map((label, k) => line(label, [], k))},
    options: options(axis('iteration'), axis('', {type: 'logarithmic'}))});
  let motion = 0;
  for (let failures = 0; failures < 3;) {
    let answer;
    try {
      answer = await (await fetch('progress?' + motion)).json();
      failures = 0;
    } catch (error) {
      ++failures;
      await new Promise(resolve => setTimeout(resolve, 300));
      continue;
    }
    if (answer.number) { motion = answer.number; showError(answer.error); }
    if (answer.motion) { showMotion(answer.motion, answer.looks); window.backdriveView.motions += 1; }
    if (answer.iteration !== undefined) {
      $('loss').textContent = digits(answer.loss);
      $('progress').textContent = 'iteration ' + answer.iteration + ' of ' + answer.iterations + ', gradient norm ' + digits(answer.gradient_norm) + ', ' + answer.running + ' running';
      if (chart) {
        [1, 2].forEach(k => { chart.data.datasets[k - 1].data = answer.history.map(row => ({x: row[0], y: row[k]})); });
        const positive = answer.history.every(row => row[1] === null || row[1] > 0);
        chart.options.scales.y.type = positive ? 'logarithmic' : 'linear';
        chart.update();
      }
      window.backdriveView.history = answer.history;
    }
    if (answer.done) { $('state').textContent = 'done'; window.backdriveView.done = true; return; }
    await new Promise(resolve => setTimeout(resolve, 250));
  }
  $('state').textContent = 'simctl has ended';
}

// For tests.
window.backdriveView = {motions: 0, last: null, gradient: null, shown, addSlider, changed, get time() { return time; }, get stage() { return stage; }};
if (scene.optimising) watchOptimisation(); else startView();
})();
