'use strict';
// The replay and the plots of a report. Everything comes from the JSON in #data (apps/report_data.h); nothing from elsewhere.
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const floats = text => {
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  return new Float32Array(bytes.buffer);
};
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const poses = floats(data.poses), times = floats(data.times), bodies = data.bodies.length, count = times.length;
const palette = ['#4c7edb', '#e08a3c', '#4fa66a', '#c75a6b', '#8a6bc9', '#3fa7b5', '#b59a3f', '#d276b2', '#6f7a8c', '#a0623a', '#5b9e9e', '#8fae3c'];

$('name').textContent = data.name;
document.title = data.name;
$('description').textContent = data.description;
$('log').textContent = data.log;
$('log-part').hidden = !data.log;
$('text').textContent = data.scene;

// ---- time: one for replay and plots

let frame = 0, playing = false, clock = 0;
const watchers = [];
function show(k) {
  frame = Math.max(0, Math.min(count - 1, k));
  $('time').value = frame;
  $('clock').textContent = times[frame].toFixed(3) + ' of ' + times[count - 1].toFixed(2) + ' s';
  for (const watch of watchers) watch();
}
function showTime(t) {  // the frame nearest to a time
  let low = 0, high = count - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] < t) low = middle; else high = middle;
  }
  show(t - times[low] < times[high] - t ? low : high);
}
function play(on) {
  playing = on;
  $('play').textContent = on ? 'Pause' : 'Play';
  if (on && frame === count - 1) show(0);
  clock = times[frame];
}
$('time').max = count - 1;
$('time').oninput = () => { play(false); show(+$('time').value); };
$('play').onclick = () => play(!playing);
$('back').onclick = () => { play(false); show(frame - 1); };
$('forth').onclick = () => { play(false); show(frame + 1); };
addEventListener('keydown', e => {
  if (['INPUT', 'SELECT', 'TEXTAREA'].includes(e.target.tagName) && e.target.id !== 'time') return;
  if (e.key === ' ') play(!playing);
  else if (e.key === 'ArrowLeft') { play(false); show(frame - (e.shiftKey ? 10 : 1)); }
  else if (e.key === 'ArrowRight') { play(false); show(frame + (e.shiftKey ? 10 : 1)); }
  else if (e.key === 'Home') { play(false); show(0); }
  else if (e.key === 'End') { play(false); show(count - 1); }
  else return;
  e.preventDefault();
});

// ---- replay

function geometries(shape) {  // [geometry, offset along z, turned from y to z]
  const [a, b, c] = shape.scale;
  switch (shape.type) {
    case 'sphere': return [new THREE.SphereBufferGeometry(a, 32, 20)];
    case 'ellipsoid': { const g = new THREE.SphereBufferGeometry(1, 32, 20); g.scale(a, b, c); return [g]; }
    case 'box': return [new THREE.BoxBufferGeometry(2 * a, 2 * b, 2 * c)];
    case 'cylinder': { const g = new THREE.CylinderBufferGeometry(a, a, 2 * b, 40); g.rotateX(Math.PI / 2); return [g]; }
    case 'capsule': {
      const points = [];  // the outline from pole to pole, turned about the axis
      for (let k = 0; k <= 20; ++k) {
        const angle = Math.PI * (k / 20 - 0.5);
        points.push(new THREE.Vector2(a * Math.cos(angle), a * Math.sin(angle) + (k < 10 ? -b : b)));
        if (k === 10) points.splice(-1, 0, new THREE.Vector2(a, -b));
      }
      const g = new THREE.LatheBufferGeometry(points, 32);
      g.rotateX(Math.PI / 2);
      return [g];
    }
    case 'mesh': case 'height_field': {
      const g = new THREE.BufferGeometry(), at = floats(shape.triangles);
      g.setAttribute('position', new THREE.BufferAttribute(at, 3));
      g.computeVertexNormals();
      return [g];
    }
  }
  return [];
}

function replay() {
  const canvas = $('scene');
  let renderer;
  try {
    renderer = new THREE.WebGLRenderer({canvas, antialias: true, preserveDrawingBuffer: true});
  } catch (error) {
    $('message').textContent = 'This browser draws no WebGL; the plots work.';
    return;
  }
  renderer.shadowMap.enabled = true;
  renderer.shadowMap.type = THREE.PCFSoftShadowMap;
  renderer.setPixelRatio(Math.min(devicePixelRatio || 1, 2));
  const scene = new THREE.Scene(), camera = new THREE.PerspectiveCamera(40, 1, 0.01, 1000);
  camera.up.set(0, 0, 1);
  const controls = new THREE.OrbitControls(camera, canvas);
  controls.enableKeys = false;

  // Where everything is, over the whole motion.
  const box = new THREE.Box3(), reach = new Float32Array(Math.max(bodies, 1));
  for (const shape of data.shapes) {
    if (shape.body >= 0) reach[shape.body] = Math.max(reach[shape.body], shape.reach);
    else if (isFinite(shape.reach) && shape.type !== 'plane') {
      box.expandByPoint(new THREE.Vector3(...shape.position).addScalar(Math.min(shape.reach, 3)));
      box.expandByPoint(new THREE.Vector3(...shape.position).addScalar(-Math.min(shape.reach, 3)));
    }
  }
  for (let k = 0; k < count; k += Math.ceil(count / 100)) {
    for (let b = 0; b < bodies; ++b) {
      const i = (k * bodies + b) * 7, r = reach[b] || 0.02;
      for (const s of [-r, r]) box.expandByPoint(new THREE.Vector3(poses[i] + s, poses[i + 1] + s, poses[i + 2] + s));
    }
  }
  if (box.isEmpty()) box.setFromCenterAndSize(new THREE.Vector3(), new THREE.Vector3(1, 1, 1));
  const centre = box.getCenter(new THREE.Vector3()), size = Math.max(box.getSize(new THREE.Vector3()).length(), 1e-3);
  camera.near = size / 200;
  camera.far = size * 60;

  const sun = new THREE.DirectionalLight(0xffffff, 0.75);
  sun.position.set(centre.x + size * 0.7, centre.y - size * 0.9, centre.z + size * 1.6);
  sun.target.position.copy(centre);
  sun.castShadow = true;
  Object.assign(sun.shadow.camera, {left: -size, right: size, top: size, bottom: -size, near: size / 50, far: size * 5});
  sun.shadow.mapSize.set(2048, 2048);
  sun.shadow.bias = -0.003;
  scene.add(sun, sun.target, new THREE.HemisphereLight(0xffffff, 0x8890a0, 0.55));

  // Ground: where a plane is, else a grid under everything.
  const planes = data.shapes.filter(s => s.type === 'plane');
  const decade = Math.pow(10, Math.floor(Math.log10(size / 2))), cell = size / 2 > 4 * decade ? 2 * decade : decade;
  const ground = new THREE.Group();
  const floor = new THREE.Mesh(new THREE.PlaneBufferGeometry(size * 16, size * 16),
                               new THREE.MeshLambertMaterial({transparent: !planes.length, opacity: planes.length ? 1 : 0.25,
                                 polygonOffset: true, polygonOffsetFactor: 2, polygonOffsetUnits: 2}));
  floor.receiveShadow = true;
  // Of short pieces: some renderers drop lines that begin behind the camera.
  const cells = Math.min(60, Math.ceil(size * 6 / cell / 2) * 2), ends = [];
  for (let i = -cells / 2; i <= cells / 2; ++i) {
    for (let j = -cells / 2; j < cells / 2; ++j) ends.push(i, j, 0, i, j + 1, 0, j, i, 0, j + 1, i, 0);
  }
  const lines = new THREE.BufferGeometry();
  lines.setAttribute('position', new THREE.BufferAttribute(Float32Array.from(ends, x => x * cell), 3));
  const grid = new THREE.LineSegments(lines, new THREE.LineBasicMaterial({color: 0x8b95a5}));
  ground.add(floor, grid);
  if (planes.length) {
    ground.position.set(...planes[0].position);
    ground.quaternion.set(...planes[0].orientation);
  } else {
    ground.position.z = box.min.z;
  }
  scene.add(ground);

  // Before the optimisation: the same bodies, pale.
  const before = data.before ? floats(data.before) : null, ghosts = before ? data.bodies.map(() => new THREE.Group()) : [];
  for (const ghost of ghosts) { ghost.visible = false; scene.add(ghost); }
  const pale = new THREE.MeshStandardMaterial({color: 0x808a99, transparent: true, opacity: 0.32, depthWrite: false, side: THREE.DoubleSide});
  $('before-part').hidden = !before;
  const links = data.bodies.map(() => { const g = new THREE.Group(); scene.add(g); return g; });
  const still = new THREE.Group();
  scene.add(still);
  for (const shape of data.shapes) {
    const material = new THREE.MeshStandardMaterial({
      color: shape.body < 0 ? 0x9aa3b2 : palette[shape.body % palette.length], roughness: 0.6, metalness: 0.05,
      flatShading: shape.type === 'mesh' || shape.type === 'height_field', side: THREE.DoubleSide});
    for (const geometry of geometries(shape)) {
      const mesh = new THREE.Mesh(geometry, material);
      mesh.castShadow = mesh.receiveShadow = true;
      mesh.position.set(...shape.position);
      mesh.quaternion.set(...shape.orientation);
      (shape.body < 0 ? still : links[shape.body]).add(mesh);
      if (before && shape.body >= 0) {
        const ghost = new THREE.Mesh(geometry, pale);
        ghost.position.copy(mesh.position);
        ghost.quaternion.copy(mesh.quaternion);
        ghosts[shape.body].add(ghost);
      }
    }
  }
  // What has no shape is drawn as lines from joint to joint, and a ball at its centre of mass.
  const bones = new THREE.MeshStandardMaterial({color: 0x6f7a8c, roughness: 0.7});
  const has = new Set(data.shapes.map(s => s.body));
  const bone = (group, to) => {
    const length = to.length();
    if (!(length > size * 1e-3)) return;
    const g = new THREE.CylinderBufferGeometry(size * 0.006, size * 0.006, length, 10), mesh = new THREE.Mesh(g, bones);
    mesh.position.copy(to).multiplyScalar(0.5);
    mesh.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), to.clone().normalize());
    mesh.castShadow = true;
    group.add(mesh);
  };
  data.bodies.forEach((body, b) => {
    if (has.has(b)) return;
    bone(links[b], new THREE.Vector3(...body.com));
    for (const other of data.bodies) if (other.parent === b) bone(links[b], new THREE.Vector3(...other.offset));
    if (body.mass > 0) {
      const ball = new THREE.Mesh(new THREE.SphereBufferGeometry(size * 0.014, 20, 14),
                                  new THREE.MeshStandardMaterial({color: palette[b % palette.length]}));
      ball.position.set(...body.com);
      ball.castShadow = true;
      links[b].add(ball);
    }
  });

  data.bodies.forEach((_, b) => {  // of what has no shape the lines
    if (!before || has.has(b)) return;
    for (const part of links[b].children) {
      const ghost = new THREE.Mesh(part.geometry, pale);
      ghost.position.copy(part.position);
      ghost.quaternion.copy(part.quaternion);
      ghosts[b].add(ghost);
    }
  });
  const axes = data.bodies.map((_, b) => { const a = new THREE.AxesHelper(size * 0.08); a.visible = false; links[b].add(a); return a; });
  const masses = data.bodies.map((body, b) => {
    const ball = new THREE.Mesh(new THREE.SphereBufferGeometry(size * 0.01, 16, 10),
                                new THREE.MeshBasicMaterial({color: 0xd03838, depthTest: false, transparent: true, opacity: 0.85}));
    ball.position.set(...body.com);
    ball.visible = false;
    links[b].add(ball);
    return ball;
  });

  // Contact forces: [x y z fx fy fz] of each, from starts[frame] on; the longest arrow is a fifth of the view.
  const contacts = floats(data.contacts), starts = data.contactStarts, arrows = [];
  let most = 0;
  for (let i = 0; i < contacts.length; i += 6) most = Math.max(most, Math.hypot(contacts[i + 3], contacts[i + 4], contacts[i + 5]));
  const drawForces = () => {
    const from = starts[frame] || 0, to = $('forces').checked ? starts[frame + 1] || from : from;
    while (arrows.length < to - from) {
      const arrow = new THREE.ArrowHelper(new THREE.Vector3(0, 0, 1), new THREE.Vector3(), 1, 0xe0532f);
      scene.add(arrow);
      arrows.push(arrow);
    }
    arrows.forEach((arrow, k) => {
      const i = (from + k) * 6, force = new THREE.Vector3(contacts[i + 3], contacts[i + 4], contacts[i + 5]), n = force.length();
      arrow.visible = k < to - from && n > most * 1e-3;
      if (!arrow.visible) return;
      const length = size * 0.2 * Math.sqrt(n / most);
      arrow.position.set(contacts[i], contacts[i + 1], contacts[i + 2]);
      arrow.setDirection(force.normalize());
      arrow.setLength(length, length * 0.25, length * 0.12);
    });
  };

  const traceLine = new THREE.Line(new THREE.BufferGeometry(), new THREE.LineBasicMaterial({color: 0xe0532f}));
  traceLine.frustumCulled = false;
  scene.add(traceLine);
  const placeTrace = () => {
    const b = +$('trace').value, at = new Float32Array(b < 0 ? 0 : count * 3), com = new THREE.Vector3(), q = new THREE.Quaternion();
    for (let k = 0; b >= 0 && k < count; ++k) {
      const i = (k * bodies + b) * 7;
      q.set(poses[i + 3], poses[i + 4], poses[i + 5], poses[i + 6]);
      com.set(...data.bodies[b].com).applyQuaternion(q);
      at.set([poses[i] + com.x, poses[i + 1] + com.y, poses[i + 2] + com.z], 3 * k);
    }
    traceLine.geometry.dispose();
    traceLine.geometry = new THREE.BufferGeometry();
    traceLine.geometry.setAttribute('position', new THREE.BufferAttribute(at, 3));
    dirty = true;
  };

  for (const name of ['follow', 'trace']) {
    data.bodies.forEach((body, b) => $(name).add(new Option(body.name, b)));
  }
  let dirty = true, followed = null;
  const place = () => {
    for (let b = 0; b < bodies; ++b) {
      const i = (frame * bodies + b) * 7;
      links[b].position.set(poses[i], poses[i + 1], poses[i + 2]);
      links[b].quaternion.set(poses[i + 3], poses[i + 4], poses[i + 5], poses[i + 6]);
    }
    ghosts.forEach((ghost, b) => {
      const i = (frame * bodies + b) * 7;
      ghost.position.set(before[i], before[i + 1], before[i + 2]);
      ghost.quaternion.set(before[i + 3], before[i + 4], before[i + 5], before[i + 6]);
    });
    const b = +$('follow').value;
    if (b >= 0) {
      if (followed) {
        const by = links[b].position.clone().sub(followed);
        camera.position.add(by);
        controls.target.add(by);
      }
      followed = links[b].position.clone();
    }
    drawForces();
    dirty = true;
  };
  watchers.push(place);
  const home = () => {
    controls.target.copy(centre);
    // As far as the motion fills the view, whichever side of it is shorter.
    const away = size * 0.62 / Math.tan(camera.fov * Math.PI / 360) * Math.max(1, 1 / camera.aspect) * 0.8;
    camera.position.copy(new THREE.Vector3(0.36, -0.88, 0.31).multiplyScalar(away).add(centre));
    controls.update();
    dirty = true;
  };
  $('home').onclick = () => { $('follow').value = -1; followed = null; home(); };
  $('follow').onchange = () => {
    followed = null;
    const b = +$('follow').value;
    if (b >= 0) {
      const by = links[b].position.clone().sub(controls.target);
      camera.position.add(by);
      controls.target.add(by);
      place();
    }
  };
  $('trace').onchange = placeTrace;
  $('forces').onchange = place;
  $('before').onchange = () => { for (const ghost of ghosts) ghost.visible = $('before').checked; dirty = true; };
  $('frames').onchange = () => { for (const a of axes) a.visible = $('frames').checked; dirty = true; };
  $('masses').onchange = () => { for (const m of masses) m.visible = $('masses').checked; dirty = true; };
  controls.addEventListener('change', () => { dirty = true; });
  const resize = () => {
    const w = canvas.parentElement.clientWidth, h = canvas.parentElement.clientHeight;
    renderer.setSize(w, h, false);
    camera.aspect = w / h;
    camera.updateProjectionMatrix();
    dirty = true;
  };
  const paint = () => {
    renderer.setClearColor(colour('--sky'));
    floor.material.color.set(colour('--ground'));
    dirty = true;
  };
  addEventListener('resize', resize);
  matchMedia('(prefers-color-scheme: dark)').addListener(paint);
  resize();
  paint();
  home();
  let last = 0;
  const tick = now => {
    requestAnimationFrame(tick);
    if (playing) {
      clock += Math.min(0.1, (now - last) / 1000) * +$('speed').value;
      if (clock >= times[count - 1]) { show(count - 1); play(false); }
      else {
        let k = frame;
        while (k + 1 < count && times[k + 1] <= clock) ++k;
        if (k !== frame) show(k);
      }
    }
    last = now;
    if (dirty) { dirty = false; renderer.render(scene, camera); }
  };
  requestAnimationFrame(tick);
  // For tests: where a point of a body is on the canvas, in CSS pixels, and a frame drawn at once.
  window.backdrive = {
    project(b, point) {
      const p = links[b].localToWorld(new THREE.Vector3(...point)).project(camera);
      return [(p.x + 1) / 2 * canvas.clientWidth, (1 - p.y) / 2 * canvas.clientHeight];
    },
    camera, controls, links, draw() { scene.updateMatrixWorld(); renderer.render(scene, camera); }, show, showTime, frame: () => frame, times, data,
  };
}

// ---- plots

const columns = data.columns, rows = floats(data.rows), width = columns.length, samples = width ? rows.length / width : 0;
const cursor = {id: 'cursor', afterDraw(chart) {
  const x = chart.scales.x.getPixelForValue(times[frame]), {top, bottom} = chart.chartArea;
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
      play(false);
      showTime(c.scales.x.getValueForPixel(event.x));
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
  watchers.push(() => chart.draw());
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
replay();
if (window.Chart) { motionPlot(); lossPlot(); }
show(0);
// …report.html#t=0.5 opens at that time.
const asked = /(?:^#|&)t=([0-9.]+)/.exec(location.hash);
if (asked) showTime(+asked[1]);
if (/(?:^#|&)before/.test(location.hash) && data.before) $('before').click();
})();
