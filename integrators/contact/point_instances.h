#pragma once
// For files that are compiled for one InstanceReal: contact points and their adjoints come from point_instances.cpp,
// which all integrators share.
#include "integrators/contact/pairs.h"
#include "integrators/rollout/instance.h"

// `storage`: extern where they are used, nothing where they are made.
#define BACKDRIVE_CONTACT_POINTS(storage)                                                                            \
  namespace backdrive::contact::inline BACKDRIVE_KERNELS {                                                           \
  storage template void contact_points(const GeometricShape<InstanceReal>&, const GeometricShape<InstanceReal>&,     \
                                       ContactPoint<InstanceReal>*);                                                 \
  storage template void adj_contact_points(const GeometricShape<InstanceReal>&, const GeometricShape<InstanceReal>&, \
                                           ContactPoint<InstanceReal>*, ShapeBar<InstanceReal>&,                     \
                                           ShapeBar<InstanceReal>&);                                                 \
  }
BACKDRIVE_CONTACT_POINTS(extern)
