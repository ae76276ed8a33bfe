// Whether PyTorch is in this process. It has an allocator and a history of its own, and is left to them.
//
//   static TorchLook look;
//   if (look.HasTorch()) ...          // asked again and again: it may come at any time
//
// Thread rule: any thread. Cheap while no library is loaded.
#ifndef ASHLAR_HOLLOW_INTERPOSE_TORCH_LOOK_H_
#define ASHLAR_HOLLOW_INTERPOSE_TORCH_LOOK_H_

#include <atomic>

namespace ashlar::interpose {

class TorchLook {
 public:
  bool HasTorch();

 private:
  std::atomic<unsigned long long> loaded_ = 0;  // libraries that were loaded at the last look
  std::atomic<bool> has_torch_ = false;
};

}  // namespace ashlar::interpose

#endif  // ASHLAR_HOLLOW_INTERPOSE_TORCH_LOOK_H_
