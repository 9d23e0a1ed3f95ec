// What losses, optimisers and tapes do in a world.
#include "autodiff/optimize/adam_kernels.h"
#include "autodiff/problem/loss_kernel.h"
#include "autodiff/problem/objective_kernels.h"
#include "engine/buffer_kernels.h"
#include "engine/cuda_launch.cuh"

#define BACKDRIVE_FUNCTORS_OF(T)                             \
  BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::LossKernel<T>)     \
  BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::TotalLoss<T>)      \
  BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::SpreadRows<T>)     \
  BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::AddInto<T>)        \
  BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::WriteVariables<T>) \
  BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::PullVariables<T>)  \
  BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::FinishWorld<T>)
BACKDRIVE_FUNCTORS_OF(float)
BACKDRIVE_FUNCTORS_OF(double)
BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::WriteParameters)
BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::DecideIdleJoints)
BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::PullParameters)
BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::AddTied)
BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::ComputeNumbers)
BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::AddComputed)
BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::CountUp)
BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::AdamStep)
BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::SummarizeShare)
BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::SummarizeAll)
BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::GatherColumns<double>)
BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::GatherColumns<int>)
BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::GatherColumns<backdrive::WorldStatus>)
