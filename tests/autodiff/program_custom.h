#pragma once
// Operations with adjoints of their own, as users write them, and the one place where programs detach and walk back.
#include "autodiff/tape/rollout.h"
#include "tests/autodiff/program_reference.h"

namespace backdrive::test {

/// a·b, a + b, sin a or factor·a of every number, recorded.
Buffer<double> custom_operation(Tape<double>& tape, plain::OpKind kind, const Buffer<double>& a,
                                const Buffer<double>& b, double factor);

/// The same numbers with an identity of their own: no gradient flows through.
Buffer<double> detached(const Buffer<double>& buffer, Memory& memory);

/// Walks a tape back; parameters that the seeds do not depend on have zeros.
Gradients<double> gradients_of(Tape<double>&& tape, const Seeds<double>& seeds);

}  // namespace backdrive::test
