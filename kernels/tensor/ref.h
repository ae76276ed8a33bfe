// An intrusive reference count: who holds a tensor, a storage or a node of the graph decides when memory is freed, so
// the count is part of the result and can be asked for.
//
//   class Storage : public Counted {...};
//   Ref<Storage> a = MakeRef<Storage>(...);
//
// A type may end its own life in a static `Dispose(T*)`; otherwise it is deleted. One thread at a time.
#ifndef ASHLAR_KERNELS_TENSOR_REF_H_
#define ASHLAR_KERNELS_TENSOR_REF_H_

#include <cstdint>
#include <utility>

namespace ashlar::kernels {

class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  std::uint32_t use_count() const { return count_; }

 private:
  template <typename T>
  friend class Ref;
  std::uint32_t count_ = 0;
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) { Hold(); }
  Ref(const Ref& other) : object_(other.object_) { Hold(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Drop(); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset() {
    Drop();
    object_ = nullptr;
  }

 private:
  void Hold() {
    if (object_ != nullptr) ++static_cast<Counted*>(object_)->count_;
  }
  void Drop() {
    if (object_ == nullptr || --static_cast<Counted*>(object_)->count_ != 0) return;
    if constexpr (requires { T::Dispose(object_); }) {
      T::Dispose(object_);
    } else {
      delete object_;
    }
  }

  T* object_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> MakeRef(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_TENSOR_REF_H_
