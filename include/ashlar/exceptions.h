// What every interface of Ashlar throws: OutOfMemoryError where the device's memory is not enough, Error for anything
// else. The header needs C++17; no Abseil, and no library.
//
//   try {
//     ...
//   } catch (const ashlar::OutOfMemoryError& error) {
//     std::fputs(error.what(), stderr);  // at most 12 lines: where every byte is
//   }
#ifndef ASHLAR_EXCEPTIONS_H_
#define ASHLAR_EXCEPTIONS_H_

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "ashlar/export.h"

namespace ashlar {

// The device's memory is not enough, after everything was tried; nothing else is wrong. Copies never throw.
class ASHLAR_EXPORT OutOfMemoryError : public std::bad_alloc {
 public:
  explicit OutOfMemoryError(std::string text) : text_(std::make_shared<const std::string>(std::move(text))) {}
  const char* what() const noexcept override { return text_->c_str(); }

 private:
  std::shared_ptr<const std::string> text_;
};

// Any other failure: no GPU, an unknown setting, the device's own error by call, name and text.
class ASHLAR_EXPORT Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ashlar

#endif  // ASHLAR_EXCEPTIONS_H_
