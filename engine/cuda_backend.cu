// GPUs by the CUDA runtime, which is linked statically and looks for a driver when it is first asked.
#include "engine/cuda_backend.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <string>

#include "engine/cuda_stream.cuh"
#include "engine/error.h"

namespace backdrive {
namespace {

constexpr int kMaxDevices = 64;

CudaKernel* first_kernel = nullptr;

class CudaBackend final : public DeviceBackend {
 public:
  explicit CudaBackend(int index) : DeviceBackend({DeviceKind::cuda, index}) {
    select();
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  }

  cudaStream_t stream() const { return stream_; }
  void select() const { check_cuda(cudaSetDevice(device().index), "choosing the device"); }
  void count_launch() { ++counters_.launches; }

  DeviceInfo info() const override {
    cudaDeviceProp p;
    check_cuda(cudaGetDeviceProperties(&p, device().index), "asking for the device's properties");
    int clock = 0;
    check_cuda(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device().index), "asking for the clock rate");
    DeviceInfo info;
    info.name = p.name;
    info.architecture = std::to_string(p.major) + "." + std::to_string(p.minor);
    info.multiprocessors = p.multiProcessorCount;
    info.threads_per_multiprocessor = p.maxThreadsPerMultiProcessor;
    info.memory_bytes = p.totalGlobalMem;
    info.cache_bytes = static_cast<std::size_t>(p.l2CacheSize);
    info.shared_bytes = p.sharedMemPerMultiprocessor;
    info.clock_khz = clock;
    return info;
  }

  std::vector<KernelResources> kernels() const override {
    select();
    const int most_threads = info().threads_per_multiprocessor;
    std::vector<KernelResources> all;
    for (const CudaKernel* kernel = first_kernel; kernel; kernel = kernel->next) {
      cudaFuncAttributes a;
      check_cuda(cudaFuncGetAttributes(&a, kernel->function), "asking what a kernel needs");
      KernelResources r;
      r.name = kernel->name();
      r.registers = a.numRegs;
      r.local_bytes = a.localSizeBytes;
      r.spill_bytes = r.local_bytes > kernel->array_bytes ? r.local_bytes - kernel->array_bytes : 0;
      r.shared_bytes = a.sharedSizeBytes;
      r.threads_per_block = kernel->threads_per_block;
      check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&r.blocks_per_multiprocessor, kernel->function,
                                                               kernel->threads_per_block, 0),
                 "asking how many blocks run at once");
      r.occupancy = static_cast<double>(r.blocks_per_multiprocessor * r.threads_per_block) / most_threads;
      all.push_back(r);
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return all;
  }

  void* allocate(std::size_t bytes) override {
    select();
    void* block = nullptr;
    return succeeded(cudaMalloc(&block, bytes)) ? block : nullptr;
  }
  void free(void* block) noexcept override {
    // At the end of the process the driver may be gone before the last block.
    cudaSetDevice(device().index);
    cudaFree(block);
  }
  void* allocate_pinned(std::size_t bytes) override {
    select();
    void* block = nullptr;
    return succeeded(cudaMallocHost(&block, bytes)) ? block : nullptr;
  }
  void free_pinned(void* block) noexcept override {
    cudaSetDevice(device().index);
    cudaFreeHost(block);
  }

  void copy(void* to, const void* from, const CopyShape& shape) override {
    transfer(to, from, shape, cudaMemcpyDeviceToDevice, "copying on the device");
  }
  void upload(void* to, const void* from, const CopyShape& shape) override {
    counters_.bytes_up += shape.all_bytes();
    transfer(to, from, shape, cudaMemcpyHostToDevice, "copying to the device");
  }
  void download(void* to, const void* from, const CopyShape& shape) override {
    counters_.bytes_down += shape.all_bytes();
    transfer(to, from, shape, cudaMemcpyDeviceToHost, "copying from the device");
  }
  void fill(void* at, int byte, std::size_t bytes) override {
    select();
    check_cuda(cudaMemsetAsync(at, byte, bytes, stream_), "filling memory");
  }
  void synchronize() override {
    select();
    ++counters_.synchronizations;
    check_cuda(cudaStreamSynchronize(stream_), "running kernels");
  }

  std::unique_ptr<DeviceGraph> record(const std::function<void()>& work) override;

 private:
  static bool succeeded(cudaError_t code) {
    if (code == cudaSuccess) return true;
    cudaGetLastError();  // forgets it
    if (code != cudaErrorMemoryAllocation) check_cuda(code, "asking for memory");
    return false;
  }
  void transfer(void* to, const void* from, const CopyShape& shape, cudaMemcpyKind kind, const char* what) {
    select();
    check_cuda(shape.bytes == shape.pitch || shape.rows == 1
                   ? cudaMemcpyAsync(to, from, shape.all_bytes(), kind, stream_)
                   : cudaMemcpy2DAsync(to, shape.pitch, from, shape.pitch, shape.bytes, shape.rows, kind, stream_),
               what);
  }

  cudaStream_t stream_ = nullptr;
};

class CudaGraph final : public DeviceGraph {
 public:
  CudaGraph(CudaBackend& backend, cudaGraphExec_t graph) : backend_(backend), graph_(graph) {}
  ~CudaGraph() override { cudaGraphExecDestroy(graph_); }
  void launch() override {
    backend_.select();
    backend_.count_launch();
    check_cuda(cudaGraphLaunch(graph_, backend_.stream()), "launching a graph");
  }

 private:
  CudaBackend& backend_;
  cudaGraphExec_t graph_;
};

std::unique_ptr<DeviceGraph> CudaBackend::record(const std::function<void()>& work) {
  select();
  const DeviceCounters before = counters_;
  check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "recording a graph");
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(stream_, &graph);
    if (graph) cudaGraphDestroy(graph);
    throw;
  }
  counters_ = before;
  check_cuda(cudaStreamEndCapture(stream_, &graph), "recording a graph");
  cudaGraphExec_t ready = nullptr;
  const cudaError_t code = cudaGraphInstantiate(&ready, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(code, "making a graph ready");
  return std::make_unique<CudaGraph>(*this, ready);
}

CudaBackend& cuda(DeviceBackend& backend) {
  return static_cast<CudaBackend&>(backend);
}

}  // namespace

void check_cuda(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  throw Error(ErrorKind::device, std::string("CUDA: ") + what + " failed: " + cudaGetErrorString(code) + " (" +
                                     cudaGetErrorName(code) + ")");
}

CudaLaunch::CudaLaunch(DeviceBackend& backend) : stream_(cuda(backend).stream()) {
  cuda(backend).select();
  cuda(backend).count_launch();
}

void CudaLaunch::check(const CudaKernel& kernel) const {
  const cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess) check_cuda(code, ("launching " + kernel.name()).c_str());
}

std::string CudaKernel::name() const {
  int status = 0;
  char* const buffer = nullptr;  // to be allocated
  char* const demangled = abi::__cxa_demangle(type.name(), buffer, nullptr, &status);
  std::string text = status == 0 ? demangled : type.name();
  std::free(demangled);
  const std::string ours = "backdrive::";
  for (std::size_t at; (at = text.find(ours)) != std::string::npos;) text.erase(at, ours.size());
  return text;
}

CudaKernel::CudaKernel(const std::type_info& functor, const void* kernel, int threads, std::size_t arrays)
    : type(functor), function(kernel), threads_per_block(threads), array_bytes(arrays), next(first_kernel) {
  first_kernel = this;
}

int cuda_device_count(std::string* why_none) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess) {
    cudaGetLastError();
    count = 0;
    if (why_none) *why_none = std::string("no GPU can be used here (") + cudaGetErrorString(code) + ")";
  } else if (count == 0 && why_none) {
    *why_none = "this machine has no GPU";
  }
  return count < kMaxDevices ? count : kMaxDevices;
}

DeviceBackend* cuda_backend(int index) {
  // Never destroyed: static objects may still hold blocks.
  static std::array<CudaBackend*, kMaxDevices>& backends = *new std::array<CudaBackend*, kMaxDevices>{};
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  if (!backends[index]) backends[index] = new CudaBackend(index);
  return backends[index];
}

}  // namespace backdrive
