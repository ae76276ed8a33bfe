// SHA-256 (FIPS 180-4), for tests that compare a long text with its published digest.
#ifndef ASHLAR_TESTS_ANALYZER_REPLAY_SHA256_H_
#define ASHLAR_TESTS_ANALYZER_REPLAY_SHA256_H_

#include <string>

namespace ashlar {

// The digest of `text` in 64 hexadecimal digits.
std::string Sha256(const std::string& text);

}  // namespace ashlar

#endif  // ASHLAR_TESTS_ANALYZER_REPLAY_SHA256_H_
