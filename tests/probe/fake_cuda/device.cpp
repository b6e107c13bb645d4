// A CUDA device for a torch without CUDA, on which fake tensors go forward and backward. It has no memory and computes
// nothing: it answers only what the autograd engine asks. To be loaded before torch (LD_PRELOAD).

#include <ATen/DeviceAccelerator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

// The engine remembers the stream of each Node and makes streams wait for events; there is one, and nothing to wait for.
struct OneStream : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  c10::Device getDevice() const override { return c10::Device(c10::DeviceType::CUDA, 0); }
  c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
  c10::Stream getStream(c10::Device) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, getDevice()); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return getStream(getDevice()); }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, OneStream)

namespace at {
// Takes the place of torch's own, which raises.
std::optional<c10::DeviceType> accelerator::getAccelerator(bool) { return c10::DeviceType::CUDA; }

// Torch looks for a class of this name.
struct CUDAHooks : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};
REGISTER_CUDA_HOOKS(CUDAHooks)
} // namespace at
