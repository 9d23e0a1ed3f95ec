'use strict';
// What is drawn of a body: its shapes, and a box that has its inertia. It needs three.js.
const BackdriveShapes = (() => {
const floats = text => {
  if (text instanceof Float32Array) return text;
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  return new Float32Array(bytes.buffer);
};

function geometries(shape) {
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

// Eigenvalues of [xx, yy, zz, xy, xz, yz], and eigenvectors as a rotation: Jacobi's rotations, each of which makes the
// largest number beside the diagonal zero.
function principalAxes([xx, yy, zz, xy, xz, yz]) {
  const a = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], v = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
  for (let sweep = 0; sweep < 30; ++sweep) {
    const [p, q] = [[0, 1], [0, 2], [1, 2]].reduce((m, n) => Math.abs(a[n[0]][n[1]]) > Math.abs(a[m[0]][m[1]]) ? n : m);
    if (!(Math.abs(a[p][q]) > 1e-12 * (Math.abs(a[p][p]) + Math.abs(a[q][q])))) break;
    const angle = 0.5 * Math.atan2(2 * a[p][q], a[q][q] - a[p][p]), c = Math.cos(angle), s = Math.sin(angle);
    for (const row of a.concat(v)) [row[p], row[q]] = [c * row[p] - s * row[q], s * row[p] + c * row[q]];
    for (let k = 0; k < 3; ++k) [a[p][k], a[q][k]] = [c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]];
  }
  return {moments: [a[0][0], a[1][1], a[2][2]], axes: v};
}

// The edges of the box of even density that has the body's mass and inertia, in its principal axes.
function inertiaBox(body) {
  if (!body.inertia || !(body.mass > 0)) return null;
  const {moments: [x, y, z], axes: v} = principalAxes(body.inertia);
  const side = twice => Math.sqrt(Math.max(0, 6 * twice / body.mass));  // m l²/12 = (Iy + Iz − Ix)/2
  const size = [side(y + z - x), side(x + z - y), side(x + y - z)];
  if (!(Math.max(...size) > 0)) return null;
  const box = new THREE.LineSegments(new THREE.EdgesGeometry(new THREE.BoxBufferGeometry(...size)), new THREE.LineBasicMaterial({color: 0xd03838}));
  const matrix = new THREE.Matrix4().set(v[0][0], v[0][1], v[0][2], 0, v[1][0], v[1][1], v[1][2], 0, v[2][0], v[2][1], v[2][2], 0, 0, 0, 0, 1);
  box.quaternion.setFromRotationMatrix(matrix);  // of determinant one, as a product of rotations
  box.position.set(...body.com);
  return box;
}

return {floats, geometries, inertiaBox, principalAxes};
})();
