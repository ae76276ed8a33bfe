// A shared library that has an allocator inside, and whose users know nothing of it.
#include <ashlar/allocator.h>
#include <ashlar/devices.h>

#include <memory>

extern "C" __attribute__((visibility("default"))) unsigned long plugin_serve() {
  const std::unique_ptr<ashlar::Device> memory = ashlar::MakeHostDevice({.capacity_bytes = ashlar::kGiB});
  ashlar::Allocator allocator(memory.get());
  const auto block = allocator.Allocate(300, ashlar::Stream{0});
  if (!block.ok()) return 0;
  const unsigned long bytes = block->size_bytes();
  allocator.Free(*block);
  return bytes;
}
