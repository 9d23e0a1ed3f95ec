#pragma once
// Centre of mass, momentum and energy of a batch of states, recorded or not. Of all functions here: with a tape, which
// may be null, gradients reach q (tangent rows, docs/orientations.md), q̇, and the masses, centres of mass, inertias,
// frames and axes; O(worlds · links); T is float or double. They throw Error (usage) for shapes that do not agree,
// buffers on a device, models of maximal coordinates, and models without mass.
#include "autodiff/tape/rollout.h"

namespace backdrive {

/// Rows: x, y, z of its position in m, and of its velocity in m/s, world axes.
template <class T>
Buffer<T> center_of_mass(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state,
                         Memory& memory = default_memory());

/// Rows: linear, kg·m/s, and angular about the centre of mass, kg·m²/s, world axes.
template <class T>
Buffer<T> momentum(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state,
                   Memory& memory = default_memory());

/// Rows: kinetic, armature included, and potential of gravity, less what is compensated, J. Springs are no part of it.
/// Gradients reach armature, gravity and its compensation, too.
template <class T>
Buffer<T> energy(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state,
                 Memory& memory = default_memory());

}  // namespace backdrive
