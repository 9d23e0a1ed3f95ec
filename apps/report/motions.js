'use strict';
// Motions of a report, read from their text (apps/shown_motion.h), and those that are shown beside the one that plays.
const BackdriveMotions = (() => {
const {floats, geometries, palette} = Backdrive;
const {bytes} = BackdriveShapes;
const levels = 32767;

// Seven numbers of each body in each frame; whole ones where there is a quantum.
function poses(motion) {
  if (!motion.quantum) return floats(motion.poses);
  const numbers = new Int16Array(bytes(motion.poses)), result = new Float32Array(numbers.length);
  for (let i = 0; i < numbers.length; ++i) {
    const k = i % 7;
    result[i] = k < 3 ? motion.origin[k] + motion.quantum[k] * numbers[i] : numbers[i] / levels;
  }
  return result;
}

// A list, in which some are other than in the first model's.
const patched = (list, other) => !other ? list : Array.isArray(other) ? other : list.map((one, k) => other[k] || one);

function read(motion, data) {
  return {
    name: motion.name, times: floats(motion.times), poses: poses(motion), contacts: floats(motion.contacts || ''),
    contactStarts: motion.contactStarts || [], columns: motion.columns || [], rows: floats(motion.rows || ''),
    bodies: patched(data.bodies, motion.bodies), shapes: patched(data.shapes, motion.shapes), looks: data.looks,
    ownShapes: !!motion.shapes,
  };
}

// Other motions on a stage: pale where they are, or side by side. Bodies that look as those of the stage are drawn as
// instances: of each part one call for all.
class Others {
  constructor(stage, time) {
    this.stage = stage;
    this.time = time;
    this.motions = [];
    this.beside = false;
    this.pale = BackdriveShapes.matter(0x808a99, {transparent: true, opacity: 0.28, depthWrite: false, side: THREE.FrontSide});
    time.watch(() => this.place());
  }

  set(motions, beside) {
    const other = beside !== this.beside;
    this.motions = motions;
    this.beside = beside;
    this.robot = null;
    this.place();
    if (other) this.stage.home();
  }

  // The parts of a link that are to be seen: [{geometry, material, matrix}]. Of many, what touches, in coarse rounds.
  parts(b) {
    const {links, axes, masses, shapes} = this.stage, own = shapes.filter(shape => shape.body === b);
    if (this.motions.length > 8 && own.length) {
      const material = BackdriveShapes.matter(palette[b % palette.length]), one = new THREE.Vector3(1, 1, 1);
      return own.flatMap(shape => geometries(shape, 0.4).map(geometry => ({geometry, material, matrix:
        new THREE.Matrix4().compose(new THREE.Vector3(...shape.position), new THREE.Quaternion(...shape.orientation), one)})));
    }
    const parts = links[b].children.filter(part => part.isMesh && !axes.includes(part) && !masses.includes(part));
    for (const part of parts) part.updateMatrix();
    return parts;
  }

  build() {
    const {stage} = this, group = new THREE.Group();
    const size = stage.extent().getSize(new THREE.Vector3()).multiplyScalar(1.1), places = this.motions.length + 1;
    // A few stand in a row, across the view; of many, lanes as many as make the field about as long as it is wide. The
    // one that plays is the first.
    const across = places <= 5 ? places : Math.max(2, Math.round(Math.sqrt(places * size.y / size.x)));
    stage.spread = this.beside ? [(across - 1) * size.x, (Math.ceil(places / across) - 1) * size.y] : [0, 0];
    this.offsets = new Map(this.motions.map((motion, k) =>
      [motion, this.beside ? [(k + 1) % across * size.x, Math.floor((k + 1) / across) * size.y] : [0, 0]]));
    this.instances = [];
    // A material is compiled for instances or for single bodies, not for both.
    const copies = new Map(), ofInstances = material => copies.get(material) || copies.set(material, material.clone()).get(material);
    const alike = this.motions.filter(m => !m.ownShapes), own = this.motions.filter(m => m.ownShapes);
    for (let b = 0; alike.length && b < stage.bodies.length; ++b) {
      for (const part of this.parts(b)) {
        const mesh = new THREE.InstancedMesh(part.geometry, this.beside ? ofInstances(part.material) : this.pale, alike.length);
        mesh.frustumCulled = false;
        group.add(mesh);
        this.instances.push({b, mesh, local: part.matrix.clone()});
      }
    }
    this.alike = alike;
    this.own = own.map(motion => {
      const links = motion.bodies.map(() => { const g = new THREE.Group(); group.add(g); return g; });
      for (const shape of stage.drawnShapes(motion.shapes)) {
        if (shape.body < 0) continue;
        for (const geometry of geometries(shape)) {
          const mesh = new THREE.Mesh(geometry, this.pale);
          mesh.position.set(...shape.position);
          mesh.quaternion.set(...shape.orientation);
          links[shape.body].add(mesh);
        }
      }
      return {motion, links};
    });
    stage.replace('others', group);
    this.robot = stage.robot;
  }

  place() {
    if (!this.motions.length && !this.stage.others) return;
    if (this.robot !== this.stage.robot) this.build();
    const now = this.time.times[this.time.frame], matrix = new THREE.Matrix4(), at = new THREE.Vector3();
    const turn = new THREE.Quaternion(), one = new THREE.Vector3(1, 1, 1);
    const put = (motion, b, frame) => {
      const i = (frame * this.stage.bodies.length + b) * 7, p = motion.poses, [x, y] = this.offsets.get(motion);
      at.set(p[i] + x, p[i + 1] + y, p[i + 2]);
      turn.set(p[i + 3], p[i + 4], p[i + 5], p[i + 6]);
    };
    const frames = this.alike.map(m => Backdrive.nearestFrame(m.times, now));
    for (const {b, mesh, local} of this.instances) {
      this.alike.forEach((motion, k) => {
        put(motion, b, frames[k]);
        mesh.setMatrixAt(k, matrix.compose(at, turn, one).multiply(local));
      });
      mesh.instanceMatrix.needsUpdate = true;
    }
    for (const {motion, links} of this.own) {
      const frame = Backdrive.nearestFrame(motion.times, now);
      links.forEach((link, b) => { put(motion, b, frame); link.position.copy(at); link.quaternion.copy(turn); });
    }
    this.stage.dirty = true;
  }
}
return {read, Others};
})();
