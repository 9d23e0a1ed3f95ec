'use strict';
// What is drawn of a body: its shapes, and a box that has its inertia. It needs three.js.
const BackdriveShapes = (() => {
const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer;
const floats = text => text instanceof Float32Array ? text : new Float32Array(bytes(text));

// Whether the processor draws: there, shadows have coarser edges.
function isSoftware(gl) {
  const info = gl.getExtension('WEBGL_debug_renderer_info');
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(info ? gl.getParameter(info.UNMASKED_RENDERER_WEBGL) : '');
}

// What bodies are made of: light by vertex, which renderers without a GPU draw three times as fast as by pixel.
const matter = (color, more) => new THREE.MeshLambertMaterial(Object.assign({color, side: THREE.DoubleSide}, more));

// `fine`: 1, or less for rounds of fewer corners.
function geometries(shape, fine = 1) {
  const [a, b, c] = shape.scale, round = corners => Math.max(6, 2 * Math.round(corners * fine / 2));
  switch (shape.type) {
    case 'sphere': return [new THREE.SphereBufferGeometry(a, round(32), round(20))];
    case 'ellipsoid': { const g = new THREE.SphereBufferGeometry(1, round(32), round(20)); g.scale(a, b, c); return [g]; }
    case 'box': return [new THREE.BoxBufferGeometry(2 * a, 2 * b, 2 * c)];
    case 'cylinder': { const g = new THREE.CylinderBufferGeometry(a, a, 2 * b, round(40)); g.rotateX(Math.PI / 2); return [g]; }
    case 'capsule': {
      const points = [], n = round(20);  // the outline from pole to pole, turned about the axis
      for (let k = 0; k <= n; ++k) {
        const angle = Math.PI * (k / n - 0.5);
        points.push(new THREE.Vector2(a * Math.cos(angle), a * Math.sin(angle) + (k < n / 2 ? -b : b)));
        if (k === n / 2) points.splice(-1, 0, new THREE.Vector2(a, -b));
      }
      const g = new THREE.LatheBufferGeometry(points, round(32));
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

// A mesh of looks (apps/looks.h). Corners whose faces meet flatter than 40 degrees share their normal, others have edges.
function lookGeometry({vertices, origin, quantum, triangles}) {
  const places = new Int16Array(bytes(vertices)), Corners = places.length / 3 > 65536 ? Uint32Array : Uint16Array;
  const corners = new Corners(bytes(triangles)), n = corners.length;
  const at = new Float32Array(3 * n), faces = new Float32Array(n), normals = new Float32Array(3 * n);
  for (let k = 0; k < n; ++k) for (let c = 0; c < 3; ++c) at[3 * k + c] = origin[c] + quantum * places[3 * corners[k] + c];
  for (let k = 0; k < n; k += 3) {  // unit normals; what has no area has none
    const i = 3 * k, ux = at[i + 3] - at[i], uy = at[i + 4] - at[i + 1], uz = at[i + 5] - at[i + 2];
    const vx = at[i + 6] - at[i], vy = at[i + 7] - at[i + 1], vz = at[i + 8] - at[i + 2];
    const x = uy * vz - uz * vy, y = uz * vx - ux * vz, z = ux * vy - uy * vx, length = Math.hypot(x, y, z) || 1;
    faces[k] = x / length, faces[k + 1] = y / length, faces[k + 2] = z / length;
  }
  // Corners by vertex, as lists that are linked.
  const last = new Int32Array(places.length / 3).fill(-1), before = new Int32Array(n);
  for (let k = 0; k < n; ++k) { before[k] = last[corners[k]]; last[corners[k]] = k; }
  const flat = Math.cos(40 * Math.PI / 180);
  for (let k = 0; k < n; ++k) {
    const f = k - k % 3, a = faces[f], b = faces[f + 1], c = faces[f + 2];
    let x = 0, y = 0, z = 0;
    for (let other = last[corners[k]], most = 64; other >= 0 && most > 0; other = before[other], --most) {
      const g = other - other % 3;
      if (a * faces[g] + b * faces[g + 1] + c * faces[g + 2] < flat) continue;
      x += faces[g], y += faces[g + 1], z += faces[g + 2];
    }
    normals[3 * k] = x || a, normals[3 * k + 1] = y || b, normals[3 * k + 2] = z || c;
  }
  const g = new THREE.BufferGeometry();
  g.setAttribute('position', new THREE.BufferAttribute(at, 3));
  g.setAttribute('normal', new THREE.BufferAttribute(normals, 3));
  g.normalizeNormals();
  return g;
}

// Meshes with geometries, made once: [{body, geometry, material, position, orientation}] of looks.
function lookParts(looks, colourOfBody) {
  const meshes = new Map(), materials = new Map();
  const once = (made, key, make) => { if (!made.has(key)) made.set(key, make()); return made.get(key); };
  return looks.looks.map(look => {
    const [r, g, b, opacity] = look.colour || [0, 0, 0, 1];
    const material = once(materials, look.colour ? look.colour.join() : look.body, () =>
      matter(look.colour ? new THREE.Color(r, g, b) : colourOfBody(look.body), {transparent: opacity < 1, opacity}));
    const geometry = look.type === 'mesh' ? once(meshes, look.mesh, () => lookGeometry(looks.meshes[look.mesh])) : geometries(look)[0];
    return {body: look.body, geometry, material, position: look.position, orientation: look.orientation};
  });
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

return {bytes, floats, geometries, lookParts, matter, inertiaBox, isSoftware, principalAxes};
})();
