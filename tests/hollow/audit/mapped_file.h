// The bytes of a file right before memory that nobody may read, so that a read past their end is seen.
#ifndef ASHLAR_TESTS_HOLLOW_AUDIT_MAPPED_FILE_H_
#define ASHLAR_TESTS_HOLLOW_AUDIT_MAPPED_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "gtest/gtest.h"

namespace ashlar {

class GuardedBytes {
 public:
  explicit GuardedBytes(const std::string& bytes) : size_(bytes.size()) {
    whole_ = (size_ + page_ - 1) / page_ * page_ + page_;
    base_ =
        static_cast<unsigned char*>(mmap(nullptr, whole_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(base_ + whole_ - page_, page_, PROT_NONE), 0);
    std::copy(bytes.begin(), bytes.end(), data());
  }
  ~GuardedBytes() { munmap(base_, whole_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  // Aligned as a file's are where the size is.
  unsigned char* data() { return base_ + whole_ - page_ - (size_ + 7) / 8 * 8; }
  std::size_t size() const { return size_; }

 private:
  const std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::size_t size_, whole_ = 0;
  unsigned char* base_ = nullptr;
};

}  // namespace ashlar

#endif  // ASHLAR_TESTS_HOLLOW_AUDIT_MAPPED_FILE_H_
