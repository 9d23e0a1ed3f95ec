'use strict';
// The replay of reports and of the viewer: time with its controls, and the motion in 3D. It needs three.js, shapes.js, and
// the elements of #replay in page.html. Data: as of apps/report_data.h.
const Backdrive = (() => {
const $ = id => document.getElementById(id);
const {floats, geometries, lookParts, matter, inertiaBox, isSoftware} = BackdriveShapes;
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colourOf = body => body < 0 ? 0x9aa3b2 : palette[body % palette.length];
const palette = ['#4c7edb', '#e08a3c', '#4fa66a', '#c75a6b', '#8a6bc9', '#3fa7b5', '#b59a3f', '#d276b2', '#6f7a8c', '#a0623a', '#5b9e9e', '#8fae3c'];

// ---- time: one for all that is shown

function nearestFrame(times, t) {
  let low = 0, high = times.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] < t) low = middle; else high = middle;
  }
  return t - times[low] < times[high] - t ? low : high;
}

// The times (s) of the frames of a motion, which of them is shown, and whether it plays.
class Time {
  constructor(times) {
    this.frame = 0;
    this.share = 0;
    this.playing = false;
    this.clock = 0;
    this.watchers = [];
    this.set(times);
    this.listen();
  }
  get last() { return this.times.length - 1; }
  // Those of another motion; what is shown stays at its time.
  set(times) {
    const now = this.times ? this.times[this.frame] : 0;
    this.times = times;
    this.digits = Math.min(9, 3 + Math.max(0, -Math.floor(Math.log10(times[this.last] || 1))));  // of the clock
    $('time').max = this.last;
    this.frame = this.nearest(now);
  }
  watch(tell) { this.watchers.push(tell); }
  show(k, share = 0) {  // and a share of the way to the next
    this.frame = Math.max(0, Math.min(this.last, k));
    this.share = this.frame < this.last ? share : 0;
    $('time').value = this.frame;
    $('clock').textContent = this.times[this.frame].toFixed(this.digits) + ' of ' + this.times[this.last].toFixed(this.digits - 1) + ' s';
    for (const tell of this.watchers) tell();
  }
  nearest(t) { return nearestFrame(this.times, t); }
  showTime(t) { this.show(this.nearest(t)); }
  showBetween(t) {  // between frames, too
    const {times} = this;
    let k = this.nearest(t);
    if (k > 0 && times[k] > t) --k;
    this.show(k, k < this.last ? Math.max(0, Math.min(1, (t - times[k]) / (times[k + 1] - times[k]))) : 0);
  }
  play(on) {
    this.playing = on;
    $('play').textContent = on ? 'Pause' : 'Play';
    if (on && this.frame === this.last) this.show(0);
    this.clock = this.times[this.frame];
  }
  advance(seconds) {  // while it plays
    this.clock += seconds * +$('speed').value;
    if (this.clock >= this.times[this.last]) {
      this.show(this.last);
      this.play(false);
      return;
    }
    let k = this.frame;
    while (k < this.last && this.times[k + 1] <= this.clock) ++k;
    if (k !== this.frame) this.show(k);
  }
  listen() {
    const stop = k => { this.play(false); this.show(k); };
    $('time').oninput = () => stop(+$('time').value);
    $('play').onclick = () => this.play(!this.playing);
    $('back').onclick = () => stop(this.frame - 1);
    $('forth').onclick = () => stop(this.frame + 1);
    addEventListener('keydown', e => {
      if (['INPUT', 'SELECT', 'TEXTAREA'].includes(e.target.tagName) && e.target.id !== 'time') return;
      if (e.key === ' ') this.play(!this.playing);
      else if (e.key === 'ArrowLeft') stop(this.frame - (e.shiftKey ? 10 : 1));
      else if (e.key === 'ArrowRight') stop(this.frame + (e.shiftKey ? 10 : 1));
      else if (e.key === 'Home') stop(0);
      else if (e.key === 'End') stop(this.last);
      else return;
      e.preventDefault();
    });
  }
}

// ---- stage: a motion in 3D

class Stage {
  constructor(renderer, time, data) {
    this.time = time;
    this.canvas = renderer.domElement;
    this.renderer = renderer;
    this.renderer.debug.checkShaderErrors = false;  // asking waits for the compiler
    this.software = isSoftware(renderer.getContext());
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = this.software ? THREE.PCFShadowMap : THREE.PCFSoftShadowMap;
    this.renderer.setPixelRatio(Math.min(devicePixelRatio || 1, 2));
    this.scene = new THREE.Scene();
    this.camera = new THREE.PerspectiveCamera(40, 1, 0.01, 1000);
    this.camera.up.set(0, 0, 1);
    this.controls = new THREE.OrbitControls(this.camera, this.canvas);
    this.controls.enableKeys = false;
    this.arrows = [];
    this.followed = null;
    this.shadows = this.dirty = true;
    this.traceLine = new THREE.Line(new THREE.BufferGeometry(), new THREE.LineBasicMaterial({color: 0xe0532f}));
    this.traceLine.frustumCulled = false;
    this.scene.add(this.traceLine);
    for (const name of ['follow', 'trace']) data.bodies.forEach((body, b) => $(name).add(new Option(body.name, b)));
    this.setBodies(data);
    this.setMotion(data);
    this.listen();
    this.resize();
    this.paint();
    this.home();
    this.tick();
  }

  // Another motion of the same bodies: poses, before, contacts and contactStarts; its times are in `time` already.
  setMotion(data) {
    this.poses = floats(data.poses);
    this.before = data.before ? floats(data.before) : null;
    $('before-part').hidden = !this.before;
    // Contact forces: [x y z fx fy fz] of each, from starts[frame] on; the longest arrow is a fifth of the view.
    this.contacts = floats(data.contacts);
    this.contactStarts = data.contactStarts;
    this.mostForce = 0;
    for (let i = 0; i < this.contacts.length; i += 6) {
      this.mostForce = Math.max(this.mostForce, Math.hypot(this.contacts[i + 3], this.contacts[i + 4], this.contacts[i + 5]));
    }
    const box = this.extent(), size = Math.max(box.getSize(new THREE.Vector3()).length(), 1e-3);
    const same = this.size && size < 2 * this.size && size > this.size / 2 &&
      box.getCenter(new THREE.Vector3()).distanceTo(this.centre) < this.size;
    if (!same) this.setSize(box, size);
    if (this.drawn) this.choose();
    this.placeTrace();
  }

  // Other bodies or shapes, as many and of the same names as before.
  setBodies(data) {
    this.bodies = data.bodies;
    this.shapes = data.shapes;
    this.looks = data.looks || {looks: [], hidden: []};
    $('collision-part').hidden = !this.looks.looks.length;
    this.drawn = false;
  }

  // Shapes that are drawn: all, or those that no look of their body stands for.
  drawnShapes(shapes) {
    const hidden = new Set($('collision').checked ? [] : this.looks.hidden);
    return shapes.filter(shape => !hidden.has(shape.name));
  }
  drawnLooks() { return $('collision').checked ? [] : this.looks.looks; }

  // Where everything is, over the whole motion.
  extent() {
    const box = new THREE.Box3(), bodies = this.bodies.length, reach = new Float32Array(Math.max(bodies, 1));
    for (const shape of this.shapes.concat(this.looks.looks)) {
      if (shape.body >= 0) reach[shape.body] = Math.max(reach[shape.body], shape.reach);
      else if (isFinite(shape.reach) && shape.type !== 'plane') {
        box.expandByPoint(new THREE.Vector3(...shape.position).addScalar(Math.min(shape.reach, 3)));
        box.expandByPoint(new THREE.Vector3(...shape.position).addScalar(-Math.min(shape.reach, 3)));
      }
    }
    const count = this.time.times.length;
    for (let k = 0; k < count; k += Math.ceil(count / 100)) {
      for (let b = 0; b < bodies; ++b) {
        const i = (k * bodies + b) * 7, r = reach[b] || 0.02;
        for (const s of [-r, r]) box.expandByPoint(new THREE.Vector3(this.poses[i] + s, this.poses[i + 1] + s, this.poses[i + 2] + s));
      }
    }
    if (box.isEmpty()) box.setFromCenterAndSize(new THREE.Vector3(), new THREE.Vector3(1, 1, 1));
    return box;
  }

  // What is as large as the motion: view, light, ground, lines and balls.
  setSize(box, size) {
    this.size = size;
    this.centre = box.getCenter(new THREE.Vector3());
    this.camera.near = size / 200;
    this.camera.far = size * 60;
    this.camera.updateProjectionMatrix();
    this.replace('light', this.makeLight());
    this.replace('ground', this.makeGround(box));
    this.drawn = false;
  }

  // A group in place of the one of that name.
  replace(name, group) {
    if (this[name]) {
      this.scene.remove(this[name]);
      this[name].traverse(part => { if (part.geometry) part.geometry.dispose(); if (part.material) part.material.dispose(); });
    }
    this[name] = group;
    this.scene.add(group);
    this.dirty = true;
  }

  makeLight() {
    const {centre, size} = this, sun = new THREE.DirectionalLight(0xffffff, 0.75), light = new THREE.Group();
    sun.position.set(centre.x + size * 0.7, centre.y - size * 0.9, centre.z + size * 1.6);
    sun.target.position.copy(centre);
    sun.castShadow = this.shadows;
    Object.assign(sun.shadow.camera, {left: -size, right: size, top: size, bottom: -size, near: size / 50, far: size * 5});
    sun.shadow.mapSize.setScalar(this.software ? 1024 : 2048);
    sun.shadow.bias = -0.003;
    light.add(sun, sun.target, new THREE.HemisphereLight(0xffffff, 0x8890a0, 0.55));
    return light;
  }

  // Ground: where a plane is, else a grid under everything.
  makeGround(box) {
    const {size} = this, planes = this.shapes.filter(s => s.type === 'plane');
    const decade = Math.pow(10, Math.floor(Math.log10(size / 2))), cell = size / 2 > 4 * decade ? 2 * decade : decade;
    const ground = new THREE.Group();
    this.floor = new THREE.Mesh(new THREE.PlaneBufferGeometry(size * 16, size * 16),
                                new THREE.MeshLambertMaterial({transparent: !planes.length, opacity: planes.length ? 1 : 0.25,
                                  polygonOffset: true, polygonOffsetFactor: 2, polygonOffsetUnits: 2}));
    this.floor.receiveShadow = true;
    this.floor.material.color.set(colour('--ground'));
    // Of short pieces: some renderers drop lines that begin behind the camera.
    const cells = Math.min(60, Math.ceil(size * 6 / cell / 2) * 2), ends = [];
    for (let i = -cells / 2; i <= cells / 2; ++i) {
      for (let j = -cells / 2; j < cells / 2; ++j) ends.push(i, j, 0, i, j + 1, 0, j, i, 0, j + 1, i, 0);
    }
    const lines = new THREE.BufferGeometry();
    lines.setAttribute('position', new THREE.BufferAttribute(Float32Array.from(ends, x => x * cell), 3));
    const grid = new THREE.LineSegments(lines, new THREE.LineBasicMaterial({color: 0x8b95a5}));
    ground.add(this.floor, grid);
    if (planes.length) {
      ground.position.set(...planes[0].position);
      ground.quaternion.set(...planes[0].orientation);
    } else {
      ground.position.z = box.min.z;
    }
    return ground;
  }

  // Links, and the same before an optimisation as pale ghosts.
  makeBodies() {
    const robot = new THREE.Group(), group = () => { const g = new THREE.Group(); robot.add(g); return g; };
    this.links = this.bodies.map(group);
    this.ghosts = this.bodies.map(group);
    const still = group();
    const add = (shape, geometry, material) => {
      const mesh = new THREE.Mesh(geometry, material);
      mesh.castShadow = mesh.receiveShadow = true;
      mesh.position.set(...shape.position);
      mesh.quaternion.set(...shape.orientation);
      (shape.body < 0 ? still : this.links[shape.body]).add(mesh);
    };
    for (const shape of this.drawnShapes(this.shapes)) {
      const material = matter(colourOf(shape.body));
      for (const geometry of geometries(shape)) add(shape, geometry, material);
    }
    if (!$('collision').checked && this.looks.looks.length) {
      for (const part of lookParts(this.looks, colourOf)) add(part, part.geometry, part.material);
    }
    this.addBones();
    const pale = matter(0x808a99, {transparent: true, opacity: 0.32, depthWrite: false});
    this.links.forEach((link, b) => {
      for (const part of link.children) {
        const ghost = new THREE.Mesh(part.geometry, pale);
        ghost.position.copy(part.position);
        ghost.quaternion.copy(part.quaternion);
        this.ghosts[b].add(ghost);
      }
    });
    this.addMarks();
    return robot;
  }

  // What has no shape is drawn as lines from joint to joint, and a ball at its centre of mass.
  addBones() {
    const {size, links} = this, bones = matter(0x6f7a8c);
    const has = new Set(this.drawnShapes(this.shapes).concat(this.drawnLooks()).map(s => s.body));
    const bone = (group, to) => {
      const length = to.length();
      if (!(length > size * 1e-3)) return;
      const g = new THREE.CylinderBufferGeometry(size * 0.006, size * 0.006, length, 10), mesh = new THREE.Mesh(g, bones);
      mesh.position.copy(to).multiplyScalar(0.5);
      mesh.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), to.clone().normalize());
      mesh.castShadow = true;
      group.add(mesh);
    };
    this.bodies.forEach((body, b) => {
      if (has.has(b)) return;
      bone(links[b], new THREE.Vector3(...body.com));
      for (const other of this.bodies) if (other.parent === b) bone(links[b], new THREE.Vector3(...other.offset));
      if (body.mass > 0) {
        const ball = new THREE.Mesh(new THREE.SphereBufferGeometry(size * 0.014, 20, 14), matter(palette[b % palette.length]));
        ball.position.set(...body.com);
        ball.castShadow = true;
        links[b].add(ball);
      }
    });
  }

  addMarks() {
    const {size, links} = this;
    this.axes = this.bodies.map((_, b) => { const a = new THREE.AxesHelper(size * 0.08); links[b].add(a); return a; });
    this.masses = this.bodies.map((body, b) => {
      const ball = new THREE.Mesh(new THREE.SphereBufferGeometry(size * 0.01, 16, 10),
                                  new THREE.MeshBasicMaterial({color: 0xd03838, depthTest: false, transparent: true, opacity: 0.85}));
      ball.position.set(...body.com);
      links[b].add(ball);
      return ball;
    });
    this.inertias = this.bodies.map((body, b) => {
      const box = inertiaBox(body);
      if (box) links[b].add(box);
      return box;
    }).filter(box => box);
    this.choose();
  }

  // What the boxes say is to be seen.
  choose() {
    for (const ghost of this.ghosts) ghost.visible = !!this.before && $('before').checked;
    for (const a of this.axes) a.visible = $('frames').checked;
    for (const m of this.masses) m.visible = $('masses').checked;
    for (const box of this.inertias) box.visible = $('inertias').checked;
    this.dirty = true;
  }

  // The frame that time shows.
  place() {
    if (!this.drawn) {
      this.replace('robot', this.makeBodies());
      this.drawn = true;
    }
    const {share} = this.time, next = this.bodies.length * 7, at = new THREE.Vector3(), turn = new THREE.Quaternion();
    const put = (group, numbers, b) => {
      const i = (this.time.frame * this.bodies.length + b) * 7;
      group.position.fromArray(numbers, i);
      group.quaternion.fromArray(numbers, i + 3);
      if (!share) return;
      group.position.lerp(at.fromArray(numbers, i + next), share);
      group.quaternion.slerp(turn.fromArray(numbers, i + next + 3), share);
    };
    this.links.forEach((link, b) => put(link, this.poses, b));
    if (this.before) this.ghosts.forEach((ghost, b) => put(ghost, this.before, b));
    const b = +$('follow').value;
    if (b >= 0) {
      if (this.followed) this.moveView(this.links[b].position.clone().sub(this.followed));
      this.followed = this.links[b].position.clone();
    }
    this.drawForces();
    this.dirty = true;
  }

  moveView(by) {
    this.camera.position.add(by);
    this.controls.target.add(by);
  }

  drawForces() {
    const {arrows, contacts, mostForce: most, size} = this, frame = this.time.frame;
    const from = this.contactStarts[frame] || 0, to = $('forces').checked ? this.contactStarts[frame + 1] || from : from;
    while (arrows.length < to - from) {
      const arrow = new THREE.ArrowHelper(new THREE.Vector3(0, 0, 1), new THREE.Vector3(), 1, 0xe0532f);
      this.scene.add(arrow);
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
  }

  placeTrace() {
    const b = +$('trace').value, {poses} = this, bodies = this.bodies.length, count = this.time.times.length;
    const at = new Float32Array(b < 0 ? 0 : count * 3), com = new THREE.Vector3(), q = new THREE.Quaternion();
    for (let k = 0; b >= 0 && k < count; ++k) {
      const i = (k * bodies + b) * 7;
      q.set(poses[i + 3], poses[i + 4], poses[i + 5], poses[i + 6]);
      com.set(...this.bodies[b].com).applyQuaternion(q);
      at.set([poses[i] + com.x, poses[i + 1] + com.y, poses[i + 2] + com.z], 3 * k);
    }
    this.traceLine.geometry.dispose();
    this.traceLine.geometry = new THREE.BufferGeometry();
    this.traceLine.geometry.setAttribute('position', new THREE.BufferAttribute(at, 3));
    this.dirty = true;
  }

  home() {
    const [x, y] = this.spread || [0, 0], centre = this.centre.clone().add(new THREE.Vector3(x / 2, y / 2, 0));
    this.controls.target.copy(centre);
    // As far as the motion, with others beside it, fills the view, whichever side of it is shorter.
    const away = (this.size + Math.hypot(x, y)) * 0.62 / Math.tan(this.camera.fov * Math.PI / 360) * Math.max(1, 1 / this.camera.aspect) * 0.8;
    this.camera.position.copy(new THREE.Vector3(0.36, -0.88, 0.31).multiplyScalar(away).add(centre));
    this.controls.update();
    this.dirty = true;
  }

  resize() {
    const w = this.canvas.parentElement.clientWidth, h = this.canvas.parentElement.clientHeight;
    this.renderer.setSize(w, h, false);
    this.camera.aspect = w / h;
    this.camera.updateProjectionMatrix();
    this.dirty = true;
  }

  paint() {
    this.renderer.setClearColor(colour('--sky'));
    this.floor.material.color.set(colour('--ground'));
    this.dirty = true;
  }

  listen() {
    this.time.watch(() => this.place());
    $('home').onclick = () => { $('follow').value = -1; this.followed = null; this.home(); };
    $('follow').onchange = () => {
      this.followed = null;
      const b = +$('follow').value;
      if (b < 0) return;
      this.moveView(this.links[b].position.clone().sub(this.controls.target));
      this.place();
    };
    $('trace').onchange = () => this.placeTrace();
    $('forces').onchange = () => this.place();
    $('collision').onchange = () => { this.drawn = false; this.time.show(this.time.frame, this.time.share); };
    for (const name of ['before', 'frames', 'masses', 'inertias']) $(name).onchange = () => this.choose();
    this.controls.addEventListener('change', () => { this.dirty = true; });
    addEventListener('resize', () => this.resize());
    matchMedia('(prefers-color-scheme: dark)').addListener(() => this.paint());
  }

  tick() {
    let last = 0, count = 0, spent = 0;  // frames while it plays, and ms
    const next = now => {
      requestAnimationFrame(next);
      if (this.time.playing) {
        spent += Math.min(100, now - last);  // a page that nobody saw waited for long
        if (++count % 20 === 0) {
          if (spent > 20 * 50) this.dropShadows();
          spent = 0;
        }
      }
      if (this.time.playing) this.time.advance(Math.min(0.1, (now - last) / 1000));
      last = now;
      if (this.dirty) this.draw();
    };
    requestAnimationFrame(next);
  }

  // Most of the work of renderers without a GPU: there, motions play without.
  dropShadows() {
    this.shadows = this.light.children[0].castShadow = false;
    this.dirty = true;
  }

  draw() {
    this.dirty = false;
    this.renderer.render(this.scene, this.camera);
  }

  // For videos: nothing but the motion in all of the window, and the picture of a time as PNG.
  fillWindow() {
    Object.assign(this.canvas.parentElement.style, {position: 'fixed', inset: 0, height: 'auto', borderRadius: 0, zIndex: 9});
    this.resize(), this.home();
  }
  picture(t) {
    this.time.showBetween(t);
    this.draw();
    return this.canvas.toDataURL('image/png');
  }

  // Where a point of a body is on the canvas, in CSS pixels.
  project(b, point) {
    const p = this.links[b].localToWorld(new THREE.Vector3(...point)).project(this.camera);
    return [(p.x + 1) / 2 * this.canvas.clientWidth, (1 - p.y) / 2 * this.canvas.clientHeight];
  }
}

// A stage for data, or null and a word of it in the page.
function makeStage(time, data) {
  let renderer;
  try { renderer = new THREE.WebGLRenderer({canvas: $('scene'), antialias: true, preserveDrawingBuffer: true}); } catch (error) {
    $('message').textContent = 'This browser draws no WebGL; the plots work.';
    return null;
  }
  return window.backdriveStage = new Stage(renderer, time, data);
}

return {$, floats, colour, palette, nearestFrame, geometries, Time, makeStage};
})();
