#include "autodiff/tape/tangent_duals.h"

namespace backdrive {
namespace {

using Moved = Dual<double>;

/// Of joints and of bodies, as each_quaternion().
template <class Visit>
void each_rotation(const Topology& topology, const Visit& visit) {
  each_quaternion(topology, visit);
  each_body(topology, [&](int q, int v) { visit(TurnSide::left, q, v); });
}

/// Of three rows' values or dots.
Vec3<double> vector_at(const WorldOf<const Buffer<Moved>>& from, int row, double Moved::*part) {
  const auto number = [&](int k) { return from.batch(row + k, from.world).*part; };
  return {number(0), number(1), number(2)};
}
Quaternion<double> quaternion_at(const WorldOf<const Buffer<Moved>>& from, int row, double Moved::*part) {
  return {vector_at(from, row, part), from.batch(row + 3, from.world).*part};
}

/// Of the derivative along a of that along b, less the other way round, which is the one along ±a × b.
double commutator_sign(TurnSide side) {
  return side == TurnSide::right ? 1 : -1;
}

}  // namespace

template <class T>
void set_moving(const Topology& topology, WorldOf<const State<T>> from, std::span<const double> direction,
                WorldOf<State<Moved>> to) {
  const std::vector<int> tangent = tangent_rows(topology);
  Buffer<Moved>&q = to.batch.q, &qd = to.batch.qd;
  for (int r = 0; r < topology.nq; ++r) q.set(r, to.world, Moved(double(from.batch.q(r, from.world))));
  for (int v = 0; v < topology.nv; ++v) {
    q.write(tangent[v])[to.world].dot = direction[v];
    qd.set(v, to.world, {double(from.batch.qd(v, from.world)), direction[topology.nv + v]});
  }
  each_rotation(topology, [&](TurnSide side, int row, int v) {
    const Quaternion<double> read = quaternion_at({q, to.world}, row, &Moved::value);
    // What is of unit length in single precision is so to its rounding.
    const double scale = std::is_same_v<T, float> ? 1 / std::sqrt(dot(read.v, read.v) + read.w * read.w) : 1;
    const Quaternion<double> at{read.v * scale, read.w * scale};
    const Quaternion<double> rate = quaternion_rate(side, at, {direction[v], direction[v + 1], direction[v + 2]});
    q.set(row, to.world, {at.v.x, rate.v.x}), q.set(row + 1, to.world, {at.v.y, rate.v.y});
    q.set(row + 2, to.world, {at.v.z, rate.v.z}), q.set(row + 3, to.world, {at.w, rate.w});
  });
}

// With D_k f the derivative of f along tangent row k, the dots are D_d D_k f, and what is asked for is D_k D_d f. They
// differ by the derivative along the commutator of e_k and d: ±(e_k × d) · ∇f = ±e_k · (d × ∇f).
void add_moved_positions_gradient(const Topology& topology, std::span<const double> direction,
                                  WorldOf<const Buffer<Moved>> gradient, WorldOf<Buffer<double>> to) {
  for (int r = 0; r < topology.nq; ++r) to.batch.write(r)[to.world] += gradient.batch(r, gradient.world).dot;
  each_rotation(topology, [&](TurnSide side, int row, int v) {
    const Vec3<double> d{direction[v], direction[v + 1], direction[v + 2]};
    const Vec3<double> bracket = cross(d, vector_at(gradient, row, &Moved::value)) * commutator_sign(side);
    const double numbers[] = {bracket.x, bracket.y, bracket.z};
    for (int k = 0; k < 3; ++k) to.batch.write(row + k)[to.world] += numbers[k];
  });
}

// Of ω, the turn of q⁺ in its own axes, dω(X, Y) = ∓ω(X) × ω(Y) (Maurer and Cartan): a derivative along e_k of ω_r(d)
// is one along d of ω_r(e_k), and ±(ω(d) × ω(e_k))_r = ±(e_r × ω(d)) · ω(e_k).
void set_moving_seed(const Topology& topology, int row, WorldOf<const Buffer<Moved>> q, Buffer<Moved>& seed) {
  seed.set(tangent_rows(topology)[row], q.world, Moved(1));
  each_rotation(topology, [&](TurnSide side, int first, int v) {
    if (row < v || row > v + 2) return;
    const Vec3<double> turn =
        turn_of_rate(side, quaternion_at(q, first, &Moved::value), quaternion_at(q, first, &Moved::dot));
    const Vec3<double> unit{row == v ? 1.0 : 0.0, row == v + 1 ? 1.0 : 0.0, row == v + 2 ? 1.0 : 0.0};
    const Vec3<double> extra = cross(unit, turn) * commutator_sign(side);
    const double dots[] = {extra.x, extra.y, extra.z};
    for (int k = 0; k < 3; ++k) seed.write(first + k)[q.world].dot = dots[k];
  });
}

template void set_moving<float>(const Topology&, WorldOf<const State<float>>, std::span<const double>,
                                WorldOf<State<Moved>>);
template void set_moving<double>(const Topology&, WorldOf<const State<double>>, std::span<const double>,
                                 WorldOf<State<Moved>>);

}  // namespace backdrive
