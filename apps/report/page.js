'use strict';
// The plots and words of a report; its replay is in stage.js. Everything comes from the JSON in #data (apps/report_data.h); nothing from elsewhere.
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const {$, floats, colour, palette} = Backdrive;
const times = floats(data.times), count = times.length, time = new Backdrive.Time(times);

$('name').textContent = data.name;
document.title = data.name;
$('description').textContent = data.description;
$('log').textContent = data.log;
$('log-part').hidden = !data.log;
$('text').textContent = data.scene;

// ---- plots

const columns = data.columns, rows = floats(data.rows), width = columns.length, samples = width ? rows.length / width : 0;
const cursor = {id: 'cursor', afterDraw(chart) {
  const x = chart.scales.x.getPixelForValue(times[time.frame]), {top, bottom} = chart.chartArea;
  chart.ctx.save();
  chart.ctx.strokeStyle = colour('--accent');
  chart.ctx.beginPath();
  chart.ctx.moveTo(x, top);
  chart.ctx.lineTo(x, bottom);
  chart.ctx.stroke();
  chart.ctx.restore();
}};
const line = (label, points, k, dashed) => ({label, data: points, borderColor: palette[k % palette.length],
  backgroundColor: palette[k % palette.length], borderWidth: 1.5, borderDash: dashed ? [5, 4] : [], pointRadius: 0});
const column = c => {
  const points = [];
  for (let i = 0; i < samples; ++i) points.push({x: rows[i * width], y: rows[i * width + c]});
  return points;
};
const axis = (title, more) => Object.assign({type: 'linear', title: {display: !!title, text: title, color: colour('--soft')},
  ticks: {color: colour('--soft'), maxRotation: 0}, grid: {color: colour('--line')}}, more);
const options = (x, y, more) => Object.assign({animation: false, parsing: false, normalized: true, maintainAspectRatio: false,
  interaction: {mode: 'nearest', axis: 'x', intersect: false},
  scales: {x, y}, plugins: {legend: {labels: {color: colour('--ink'), boxWidth: 14, boxHeight: 2}}}}, more);

function motionPlot() {
  if (samples < 2) return;
  const groups = {'all: position': [], 'all: velocity': []};
  columns.forEach((name, c) => {
    if (c === 0) return;
    const parts = name.split('/'), kind = parts[1];
    (groups['all: ' + kind] = groups['all: ' + kind] || []).push(c);
    (groups[parts[0]] = groups[parts[0]] || []).push(c);
  });
  for (const name of Object.keys(groups)) if (groups[name].length) $('quantity').add(new Option(name, name));
  const chart = new Chart($('motion'), {type: 'line', data: {datasets: []}, plugins: [cursor],
    options: options(axis('s', {min: times[0], max: times[count - 1]}), axis(''), {onClick(event, _, c) {
      time.play(false);
      time.showTime(c.scales.x.getValueForPixel(event.x));
    }})});
  const fill = () => {
    const picked = groups[$('quantity').value].slice(0, 24), sets = picked.map((c, k) => line(columns[c], column(c), k));
    picked.forEach((c, k) => {
      const limits = data.limits[columns[c]];
      if (!limits || picked.length > 3) return;
      for (const value of limits) {
        if (value === null) continue;
        sets.push(line('limit', [{x: times[0], y: value}, {x: times[count - 1], y: value}], k, true));
      }
    });
    chart.data.datasets = sets;
    chart.options.plugins.legend.display = sets.length <= 14;
    chart.update();
  };
  $('quantity').onchange = fill;
  fill();
  time.watch(() => chart.draw());
  window.backdrivePlot = chart;
}

function lossPlot() {
  const h = data.history;
  $('history').hidden = !h;
  if (!h) return;
  const wanted = ['loss', 'gradient_norm'], at = h.columns.indexOf('iteration');
  const sets = wanted.filter(name => h.columns.includes(name)).map((name, k) => line(name.replace('_', ' '),
    h.rows.map(row => ({x: row[at], y: row[h.columns.indexOf(name)]})), k));
  const positive = sets.every(set => set.data.every(p => p.y === null || p.y > 0));
  new Chart($('loss'), {type: 'line', data: {datasets: sets},
    options: options(axis('iteration', {ticks: {color: colour('--soft'), precision: 0}}), axis('', {type: positive ? 'logarithmic' : 'linear'}))});
}

function bodyTable() {
  const table = $('bodies'), add = (cells, tag) => {
    const row = table.insertRow();
    for (const cell of cells) { const td = document.createElement(tag); td.textContent = cell; row.appendChild(td); }
  };
  add(['body', 'mass, kg', 'joint', 'type', 'limits', 'shapes'], 'th');
  data.bodies.forEach((body, b) => {
    const limits = data.limits[body.joint + '/position'];
    add([body.name, +body.mass.toPrecision(4), body.joint, body.type,
      limits ? '[' + limits.map(x => x === null ? 'none' : +x.toPrecision(4)).join(', ') + ']' : '',
      data.shapes.filter(s => s.body === b).map(s => s.type).join(', ')], 'td');
  });
}

bodyTable();
const stage = Backdrive.makeStage(time, data);
// For tests.
if (stage) {
  window.backdrive = {
    camera: stage.camera, controls: stage.controls, get links() { return stage.links; }, project: (b, point) => stage.project(b, point),
    draw: () => stage.draw(), show: k => time.show(k), showTime: t => time.showTime(t), frame: () => time.frame, times, data,
  };
}
if (window.Chart) { motionPlot(); lossPlot(); }
time.show(0);
// …report.html#t=0.5 opens at that time.
const asked = /(?:^#|&)t=([0-9.]+)/.exec(location.hash);
if (asked) time.showTime(+asked[1]);
if (/(?:^#|&)before/.test(location.hash) && data.before) $('before').click();
})();
