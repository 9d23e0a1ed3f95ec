'use strict';
// The plots of a sweep: a map of two of its parameters, slices along one, parallel coordinates of all. A click shows
// the motion of the point, or of the nearest one that is kept.
const BackdriveSweep = (() => {
const {$, floats, colour} = Backdrive, {line, axis, options, shortNumber} = BackdrivePlots;
// Dark to bright, also for eyes that tell few colours apart.
const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const shade = f => {
  const at = Math.max(0, Math.min(1, f)) * (stops.length - 1), k = Math.min(stops.length - 2, Math.floor(at));
  return 'rgb(' + stops[k].map((low, c) => Math.round(low + (stops[k + 1][c] - low) * (at - k))).join(',') + ')';
};

// A canvas as sharp as the screen: [context, width, height] in CSS pixels.
function drawing(canvas) {
  const ratio = devicePixelRatio || 1, w = canvas.parentElement.clientWidth - 16, h = canvas.parentElement.clientHeight - 16;
  canvas.width = w * ratio;
  canvas.height = h * ratio;
  canvas.style.width = w + 'px';
  canvas.style.height = h + 'px';
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  return [context, w, h];
}

class Sweep {
  constructor(data, open) {
    this.sweep = data.sweep;
    this.axes = data.sweep.axes;
    this.columns = data.sweep.columns;
    this.table = floats(data.sweep.table);
    this.open = open;
    this.counts = this.axes.map(a => a.values.length);
    this.points = this.counts.reduce((n, k) => n * k, 1);
    this.at = this.axes.map(() => 0);  // the chosen point, by axis
    this.kept = new Map();  // by point the motions there are
    data.motions.forEach((motion, k) => { if (motion.point >= 0) this.kept.set(motion.point, k); });
    this.makeControls();
    $('map').onclick = e => this.clickMap(e);
    $('parallel').onclick = e => this.clickParallel(e);
    addEventListener('resize', () => this.draw());
    matchMedia('(prefers-color-scheme: dark)').addListener(() => this.draw());
  }

  index(at) { return at.reduce((n, k, a) => n * this.counts[a] + k, 0); }
  places(point) {
    const at = [];
    for (let a = this.counts.length - 1; a >= 0; --a) { at[a] = point % this.counts[a]; point = Math.floor(point / this.counts[a]); }
    return at;
  }
  value(point) { return this.table[point * this.columns.length + this.shown]; }
  get shown() { return +$('sweep-c').value; }

  makeControls() {
    const many = this.axes.map((_, a) => a).filter(a => this.counts[a] > 1), order = many.concat(this.axes.map((_, a) => a));
    for (const id of ['sweep-x', 'sweep-y']) {
      this.axes.forEach((one, a) => $(id).add(new Option(one.path, a)));
      $(id).onchange = () => this.choose();
    }
    $('sweep-x').value = order[0];
    $('sweep-y').value = order[1];
    this.columns.forEach((name, c) => $('sweep-c').add(new Option(name, c)));
    $('sweep-c').onchange = $('sweep-log').onchange = () => this.draw();
    for (const part of ['sweep-y-part', 'map-part']) $(part).hidden = many.length < 2;
    $('sweep-kept').textContent = this.words();
  }

  words() {
    const {of} = this.sweep, n = this.kept.size, failed = Object.keys(this.sweep.status).length;
    const points = of || this.points;
    return (points === 1 && n ? 'Its motion is here.' : n >= points ? 'The motions of all ' + points + ' points are here.'
            : n ? n + ' motions of ' + points + ' points are here (dots): a click shows the nearest of them.'
                : 'No motion is kept here.') +
      (this.points < points ? ' The plots show ' + this.points + ' of the points.' : '') +
      (failed ? ' ' + failed + ' did not end well (grey).' : '');
  }

  // What stands for the axes that are not drawn.
  choose() {
    const x = +$('sweep-x').value, y = +$('sweep-y').value, part = $('sweep-fixed');
    part.replaceChildren();
    this.axes.forEach((one, a) => {
      if (a === x || a === y || this.counts[a] < 2) return;
      const label = document.createElement('label'), select = document.createElement('select');
      label.textContent = one.path + ' ';
      one.values.forEach((text, k) => select.add(new Option(text, k)));
      select.value = this.at[a];
      select.onchange = () => { const at = this.at.slice(); at[a] = +select.value; this.select(this.index(at)); };
      label.appendChild(select);
      part.appendChild(label);
    });
    this.draw();
  }

  select(point) {
    this.at = this.places(point);
    const values = this.axes.map((a, k) => a.path + ' = ' + a.values[this.at[k]]).join(', ');
    const status = this.sweep.status[point], number = this.value(point);
    const near = this.nearest(point), own = near === point;
    $('sweep-said').textContent = values + ': ' + (status || this.columns[this.shown] + ' ' + shortNumber(number)) +
      (own || near < 0 ? '' : ' (the motion is that of the nearest point kept)');
    this.choose();
    if (near >= 0) this.open(this.kept.get(near));
  }

  // Of the points whose motions are kept; by steps of the grid, each axis as long as the others.
  nearest(point) {
    const at = this.places(point);
    let best = -1, least = Infinity;
    for (const other of this.kept.keys()) {
      const far = this.places(other).reduce((sum, k, a) => sum + ((k - at[a]) / Math.max(1, this.counts[a] - 1)) ** 2, 0);
      if (far < least) { least = far; best = other; }
    }
    return best;
  }

  // [least, greatest, whether logarithmic, how far between them a number is]
  range() {
    let low = Infinity, high = -Infinity;
    for (let p = 0; p < this.points; ++p) {
      const v = this.value(p);
      if (isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); }
    }
    const log = $('sweep-log').checked && low > 0, on = log ? Math.log : v => v;
    return {low, high, log, part: v => high > low ? (on(v) - on(low)) / (on(high) - on(low)) : 0.5};
  }

  draw() {
    if (!this.columns.length) return;
    this.drawMap();
    this.drawSlice();
    this.drawParallel();
  }

  drawMap() {
    if ($('map-part').hidden) return;
    const [c, w, h] = drawing($('map')), x = +$('sweep-x').value, y = +$('sweep-y').value, range = this.range();
    const widest = Math.max(...this.axes[y].values.map(text => c.measureText(text).width));
    const left = Math.min(36 + widest, 160, w * 0.3), bottom = 44, right = 76, top = 8;
    const nx = this.counts[x], ny = x === y ? 1 : this.counts[y], dx = (w - left - right) / nx, dy = (h - top - bottom) / ny;
    this.mapped = {left, top, dx, dy, nx, ny, x, y, bottom: h - bottom};
    for (let i = 0; i < nx; ++i) {
      for (let j = 0; j < ny; ++j) {
        const point = this.pointOfCell(i, j), v = this.value(point);
        c.fillStyle = isFinite(v) ? shade(range.part(v)) : colour('--line');
        c.fillRect(left + i * dx, h - bottom - (j + 1) * dy, dx + 0.5, dy + 0.5);
        if (this.kept.size < this.points && this.kept.has(point)) this.dot(c, left + (i + 0.5) * dx, h - bottom - (j + 0.5) * dy);
      }
    }
    // Seen on dark cells and on light ones.
    for (const [style, inset] of [['#000000', 0], ['#ffffff', 1.5]]) {
      c.strokeStyle = style;
      c.lineWidth = 1.5;
      c.strokeRect(left + this.at[x] * dx + inset, h - bottom - ((x === y ? 0 : this.at[y]) + 1) * dy + inset, dx - 2 * inset, dy - 2 * inset);
    }
    c.fillStyle = colour('--soft');
    c.textAlign = 'center';
    this.ticks(nx, dx, 58).forEach(i => c.fillText(this.axes[x].values[i], left + (i + 0.5) * dx, h - bottom + 12));
    c.fillText(this.axes[x].path, left + nx * dx / 2, h - 10);
    c.textAlign = 'right';
    this.ticks(ny, dy, 16).forEach(j => c.fillText(this.axes[y].values[j], left - 6, h - bottom - (j + 0.5) * dy, left - 24));
    c.save();
    c.translate(8, top + ny * dy / 2);
    c.rotate(-Math.PI / 2);
    c.textAlign = 'center';
    c.fillText(this.axes[y].path, 0, 0, h - bottom);
    c.restore();
    this.legend(c, w - right + 12, top, 14, h - top - bottom, range);
  }

  dot(c, x, y) {
    c.fillStyle = '#ffffff';
    c.strokeStyle = '#000000';
    c.lineWidth = 1;
    c.beginPath();
    c.arc(x, y, 2.5, 0, 7);
    c.fill();
    c.stroke();
  }

  ticks(n, step, room) {
    const every = Math.max(1, Math.ceil(room / step)), list = [];
    for (let i = 0; i < n; i += every) list.push(i);
    return list;
  }

  legend(c, x, y, w, h, range) {
    for (let k = 0; k < h; ++k) { c.fillStyle = shade(1 - k / h); c.fillRect(x, y + k, w, 1.5); }
    c.fillStyle = colour('--soft');
    c.textAlign = 'left';
    const middle = range.log ? Math.sqrt(range.low * range.high) : (range.low + range.high) / 2;
    for (const [v, at] of [[range.high, 6], [middle, h / 2], [range.low, h - 6]]) if (isFinite(v)) c.fillText(shortNumber(v), x + w + 4, y + at, 46);
  }

  pointOfCell(i, j) {
    const {x, y} = this.mapped, at = this.at.slice();
    at[x] = i;
    if (x !== y) at[y] = j;
    return this.index(at);
  }

  clickMap(e) {
    const m = this.mapped, box = $('map').getBoundingClientRect();
    const i = Math.floor((e.clientX - box.left - m.left) / m.dx), j = Math.floor((m.bottom - (e.clientY - box.top)) / m.dy);
    if (i >= 0 && i < m.nx && j >= 0 && j < m.ny) this.select(this.pointOfCell(i, j));
  }

  // Over one parameter, a line for each value of the other.
  drawSlice() {
    const x = +$('sweep-x').value, y = +$('sweep-y').value, one = this.axes[x], sets = [];
    const across = k => one.numbers ? one.numbers[k] : k, lines = x === y ? 1 : this.counts[y];
    const shownLines = this.ticks(lines, 1, lines / 12);
    if (lines > 1 && !shownLines.includes(this.at[y])) shownLines.push(this.at[y]);
    shownLines.forEach((j, k) => {
      const points = one.values.map((_, i) => {
        const at = this.at.slice();
        at[x] = i;
        if (x !== y) at[y] = j;
        const point = this.index(at), v = this.value(point);
        return {x: across(i), y: isFinite(v) ? v : null, point};
      }).sort((a, b) => a.x - b.x);
      const set = line(lines > 1 ? this.axes[y].values[j] : this.columns[this.shown], points, k);
      set.pointRadius = points.length < 60 ? 2.5 : 0;
      if (lines > 1 && j === this.at[y]) set.borderWidth = 3;
      sets.push(set);
    });
    const log = $('sweep-log').checked && sets.every(s => s.data.every(p => p.y === null || p.y > 0));
    const bottom = axis(one.path), side = axis(this.columns[this.shown], {type: log ? 'logarithmic' : 'linear'});
    if (!one.numbers) bottom.ticks.callback = v => one.values[v] || '';
    if (this.slice) this.slice.destroy();
    this.slice = new Chart($('slice'), {type: 'line', data: {datasets: sets}, options: options(bottom, side, {
      interaction: {mode: 'nearest', axis: 'xy', intersect: false},
      onClick: (_, hits) => { if (hits.length) this.select(sets[hits[0].datasetIndex].data[hits[0].index].point); }})});
  }

  // The upright lines: every parameter, the loss, and what is coloured.
  uprights() {
    const list = this.axes.map((a, k) => ({name: a.path, of: p => this.counts[k] > 1 ? this.places(p)[k] / (this.counts[k] - 1) : 0.5,
      ends: [a.values[0], a.values[this.counts[k] - 1]]}));
    const wanted = this.columns.map((name, c) => c).filter(c => c === this.shown || this.columns[c] === 'loss');
    for (const c of wanted) {
      let low = Infinity, high = -Infinity;
      const of = p => this.table[p * this.columns.length + c];
      for (let p = 0; p < this.points; ++p) if (isFinite(of(p))) { low = Math.min(low, of(p)); high = Math.max(high, of(p)); }
      const log = $('sweep-log').checked && low > 0, on = log ? Math.log : v => v;
      list.push({name: this.columns[c], of: p => high > low ? (on(of(p)) - on(low)) / (on(high) - on(low)) : 0.5,
        ends: [shortNumber(low), shortNumber(high)]});
    }
    return list;
  }

  drawParallel() {
    const [c, w, h] = drawing($('parallel')), list = this.uprights(), range = this.range();
    const top = 46, bottom = 22, side = Math.min(60, w * 0.12), step = (w - 2 * side) / Math.max(1, list.length - 1);
    const y = f => h - bottom - f * (h - top - bottom), every = Math.ceil(this.points / 3000);
    this.lines = [];
    const stroke = (point, wide) => {
      const parts = list.map(one => one.of(point));
      if (parts.some(f => !isFinite(f))) return;
      c.globalAlpha = wide ? 1 : Math.max(0.15, Math.min(0.8, 60 / this.points));
      c.strokeStyle = wide ? colour('--ink') : shade(range.part(this.value(point)));
      c.lineWidth = wide ? 3 : 1.2;
      c.beginPath();
      parts.forEach((f, k) => k ? c.lineTo(side + k * step, y(f)) : c.moveTo(side, y(f)));
      c.stroke();
      if (!wide) this.lines.push({point, parts});
    };
    for (let p = 0; p < this.points; p += every) stroke(p, false);
    stroke(this.index(this.at), true);
    c.globalAlpha = 1;
    c.lineWidth = 1;
    c.textAlign = 'center';
    list.forEach((one, k) => {
      const x = side + k * step;
      c.strokeStyle = c.fillStyle = colour('--soft');
      c.beginPath();
      c.moveTo(x, top);
      c.lineTo(x, h - bottom);
      c.stroke();
      // Names in turn at two heights, so that long ones have room.
      c.fillText(one.name, Math.max(step * 0.4, Math.min(w - step * 0.4, x)), k % 2 ? 24 : 8, step * (list.length > 2 ? 1.9 : 0.9));
      c.fillText(one.ends[0], x, h - bottom + 9, step);
      c.fillText(one.ends[1], x, top - 8, step);
    });
    this.parallel = {side, step, y, list};
  }

  clickParallel(e) {
    const {side, step, y, list} = this.parallel, box = $('parallel').getBoundingClientRect();
    const px = e.clientX - box.left, py = e.clientY - box.top;
    const at = Math.max(0, Math.min(list.length - 1, (px - side) / step)), k = Math.min(list.length - 2, Math.floor(at));
    let best = null, least = Infinity;
    for (const one of this.lines) {
      const f = list.length < 2 ? one.parts[0] : one.parts[k] + (one.parts[k + 1] - one.parts[k]) * (at - k), far = Math.abs(y(f) - py);
      if (far < least) { least = far; best = one; }
    }
    if (best) this.select(best.point);
  }
}
return {Sweep};
})();
