'use strict';
// What plots of a report share, and those over time: of the motion that is shown, whatever it is.
const BackdrivePlots = (() => {
const {$, colour, palette} = Backdrive;
const line = (label, points, k, dashed) => ({label, data: points, borderColor: palette[k % palette.length],
  backgroundColor: palette[k % palette.length], borderWidth: 1.5, borderDash: dashed ? [5, 4] : [], pointRadius: 0});
const axis = (title, more) => Object.assign({type: 'linear', title: {display: !!title, text: title, color: colour('--soft')},
  ticks: {color: colour('--soft'), maxRotation: 0}, grid: {color: colour('--line')}}, more);
const firstOfItsName = (item, {datasets}) => datasets.findIndex(set => set.label === item.text) === item.datasetIndex;
const options = (x, y, more) => Object.assign({animation: false, parsing: false, normalized: true, maintainAspectRatio: false,
  interaction: {mode: 'nearest', axis: 'x', intersect: false},
  scales: {x, y}, plugins: {legend: {labels: {color: colour('--ink'), boxWidth: 14, boxHeight: 2, filter: firstOfItsName}}}}, more);
const scaleOf = sets => sets.every(set => set.data.every(p => p.y === null || isNaN(p.y) || p.y > 0)) ? 'logarithmic' : 'linear';

// A line at the time that is shown; a click shows another.
function overTime(canvas, time, sets, y) {
  const cursor = {id: 'cursor', afterDraw(chart) {
    const x = chart.scales.x.getPixelForValue(time.times[time.frame]), {top, bottom} = chart.chartArea;
    chart.ctx.save();
    chart.ctx.strokeStyle = colour('--accent');
    chart.ctx.beginPath();
    chart.ctx.moveTo(x, top);
    chart.ctx.lineTo(x, bottom);
    chart.ctx.stroke();
    chart.ctx.restore();
  }};
  const chart = new Chart(canvas, {type: 'line', data: {datasets: sets}, plugins: [cursor],
    options: options(axis('s', {min: time.times[0], max: time.times[time.last]}), y || axis(''), {onClick(event, _, c) {
      time.play(false);
      time.showTime(c.scales.x.getValueForPixel(event.x));
    }})});
  time.watch(() => chart.draw());
  return chart;
}

// Columns of the motion that is shown; set() takes another one's.
class MotionPlot {
  constructor(time, limits) {
    this.time = time;
    this.limits = limits;
    this.chart = overTime($('motion'), time, []);
    $('quantity').onchange = () => this.fill();
  }
  set(motion, others = []) {
    this.others = others;
    this.columns = motion.columns;
    this.rows = motion.rows;
    const groups = this.groups = {'all: position': [], 'all: velocity': []};
    motion.columns.forEach((name, c) => {
      if (c === 0) return;
      const parts = name.split('/'), kind = parts[1];
      (groups['all: ' + kind] = groups['all: ' + kind] || []).push(c);
      (groups[parts[0]] = groups[parts[0]] || []).push(c);
    });
    const select = $('quantity'), names = Object.keys(groups).filter(name => groups[name].length), chosen = select.value;
    select.replaceChildren(...names.map(name => new Option(name, name)));
    if (names.includes(chosen)) select.value = chosen;
    this.fill();
  }
  column(c, {rows, columns} = this) {
    const points = [];
    for (let i = 0; i < rows.length; i += columns.length) points.push({x: rows[i], y: rows[i + c]});
    return points;
  }
  fill() {
    const {chart, columns, time} = this, begin = time.times[0], end = time.times[time.last];
    const picked = (this.groups[$('quantity').value] || []).slice(0, 24);
    const sets = picked.map((c, k) => line(columns[c], this.column(c), k));
    // Results beside this one: the same columns, of few of them.
    for (const other of picked.length > 3 ? [] : this.others.slice(0, 8)) {
      for (const c of picked) {
        const own = other.columns.indexOf(columns[c]);
        if (own >= 0) sets.push(Object.assign(line(other.name + ': ' + columns[c], this.column(own, other), sets.length), {borderWidth: 1}));
      }
    }
    picked.forEach((c, k) => {
      const limits = this.limits[columns[c]];
      if (!limits || picked.length > 3) return;
      for (const value of limits) {
        if (value === null) continue;
        sets.push(line('limit', [{x: begin, y: value}, {x: end, y: value}], k, true));
      }
    });
    chart.data.datasets = sets;
    chart.options.scales.x.min = begin;
    chart.options.scales.x.max = end;
    chart.options.plugins.legend.display = sets.length <= 14;
    chart.update();
  }
}

// Rows of text, escaped by nature; the first is the heading.
function fillTable(table, rows) {
  rows.forEach((cells, r) => {
    const row = table.insertRow();
    for (const cell of cells) {
      const element = document.createElement(r ? 'td' : 'th');
      element.textContent = cell;
      row.appendChild(element);
    }
  });
}
const shortNumber = x => x === null || x === undefined ? '' : typeof x === 'number' ? String(+x.toPrecision(4)) : x;

return {line, axis, options, scaleOf, overTime, MotionPlot, fillTable, shortNumber};
})();
