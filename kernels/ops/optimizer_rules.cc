#include "kernels/ops/optimizer_rules.h"

#include <algorithm>
#include <cmath>

namespace ashlar::ops {
namespace {

Map8Bit MakeMap(bool is_signed) {
  Map8Bit map = {};
  std::size_t count = 0;
  for (int power = 0; power < 7; ++power) {
    const int steps = 1 << (power + (is_signed ? 0 : 1));
    for (int i = 0; i < steps; ++i) {
      const double middle = 0.1 + 0.9 * (i + 0.5) / steps;
      const float value = static_cast<float>(std::pow(10.0, power - 6) * middle);
      map[count++] = value;
      if (is_signed) map[count++] = -value;
    }
  }
  map[count++] = 0;
  map[count++] = 1;
  std::sort(map.begin(), map.end());
  return map;
}

}  // namespace

const Map8Bit& SignedMap8Bit() {
  static const Map8Bit map = MakeMap(true);
  return map;
}

const Map8Bit& UnsignedMap8Bit() {
  static const Map8Bit map = MakeMap(false);
  return map;
}

}  // namespace ashlar::ops
