// Launches Horovod's CUDA kernels, which kernels.py has compiled: in the place of what nvcc makes of
// cuda_kernels.cu. The order of `Kernel`, and of its types, is that of NAMES there.

#include "cuda_kernels.h"

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include <cuda_fp16.h>

#include "kernel_images.h"

namespace horovod {
namespace common {
namespace {

enum Kernel { COPY, SCALE_HALF2, SCALE, SCALED_COPY = SCALE + 7 };
constexpr int COPY_THREADS = 1024;
constexpr int COPY_BLOCKS = 8; // per copy: the 8 of NAMES
constexpr int SCALE_THREADS = 512;

void expect(cudaError_t code, const std::string& what) {
  if (code != cudaSuccess) {
    throw std::runtime_error("Horovod's CUDA kernels: " + what + ": " + cudaGetErrorString(code));
  }
}

// The code for the device in use: the latest of its generation that it runs, or else the text that its
// driver compiles.
const Image& fitting() {
  int device, major, minor;
  expect(cudaGetDevice(&device), "cudaGetDevice");
  expect(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "capability");
  expect(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "capability");
  const Image* best = nullptr;
  for (const Image& image : images) {
    bool fits = image.text ? best == nullptr && image.capability <= 10 * major + minor
                           : image.capability / 10 == major && image.capability % 10 <= minor;
    if (fits) best = &image;
  }
  if (best == nullptr) {
    throw std::runtime_error("Horovod's CUDA kernels: none for compute capability " + std::to_string(major) + "." +
                             std::to_string(minor));
  }
  return *best;
}

cudaKernel_t loaded(int kernel) {
  static std::mutex mutex;
  static std::map<const void*, cudaLibrary_t> libraries;
  std::lock_guard<std::mutex> lock(mutex);
  const Image& image = fitting();
  auto found = libraries.find(image.code);
  if (found == libraries.end()) {
    cudaLibrary_t library;
    expect(cudaLibraryLoadData(&library, image.code, nullptr, nullptr, 0, nullptr, nullptr, 0), "loading");
    found = libraries.emplace(image.code, library).first;
  }
  cudaKernel_t handle;
  expect(cudaLibraryGetKernel(&handle, found->second, kernel_names[kernel]), kernel_names[kernel]);
  return handle;
}

template <typename... Arguments>
void launch(int kernel, int64_t blocks, int threads, cudaStream_t stream, Arguments... arguments) {
  void* addresses[] = {&arguments...};
  auto handle = reinterpret_cast<const void*>(loaded(kernel));
  expect(cudaLaunchKernel(handle, dim3(blocks), dim3(threads), addresses, 0, stream), kernel_names[kernel]);
}

// Calls `run` with a type's place among the seven, and the factor in the type that it is scaled by.
template <typename Run> void by_type(DataType type, double factor, Run run) {
  switch (type) {
    case HOROVOD_UINT8: return run(0, factor);
    case HOROVOD_INT8: return run(1, factor);
    case HOROVOD_INT32: return run(2, factor);
    case HOROVOD_INT64: return run(3, factor);
    case HOROVOD_FLOAT16: return run(4, __float2half(static_cast<float>(factor)));
    case HOROVOD_FLOAT32: return run(5, static_cast<float>(factor));
    case HOROVOD_FLOAT64: return run(6, factor);
    default: throw std::logic_error("Type " + DataType_Name(type) + " is not scaled by Horovod's CUDA kernels.");
  }
}

int64_t blocks_of(int64_t elements) { return (elements + SCALE_THREADS - 1) / SCALE_THREADS; }

bool aligned(const void* address) { return reinterpret_cast<size_t>(address) % 4 == 0; }

} // namespace

void BatchedD2DMemcpyCudaImpl(BatchedD2DParams& params, int num_copies, cudaStream_t stream) {
  launch(COPY, int64_t(num_copies) * COPY_BLOCKS, COPY_THREADS, stream, params);
}

void ScaleBufferCudaImpl(const void* fused_input_data, void* buffer_data, const int64_t num_elements,
                         double scale_factor, DataType dtype, cudaStream_t stream) {
  by_type(dtype, scale_factor, [&](int place, auto factor) {
    bool pairs = dtype == HOROVOD_FLOAT16 && aligned(fused_input_data) && aligned(buffer_data);
    launch(pairs ? int(SCALE_HALF2) : SCALE + place, blocks_of(pairs ? (num_elements + 1) / 2 : num_elements),
           SCALE_THREADS, stream, fused_input_data, buffer_data, num_elements, factor);
  });
}

void BatchedScaledD2DMemcpyCudaImpl(BatchedD2DParams& params, int num_copies, double scale_factor, DataType dtype,
                                    cudaStream_t stream) {
  by_type(dtype, scale_factor, [&](int place, auto factor) {
    launch(SCALED_COPY + place, int64_t(num_copies) * COPY_BLOCKS, COPY_THREADS, stream, params, factor);
  });
}

} // namespace common
} // namespace horovod
