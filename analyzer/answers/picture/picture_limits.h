// How much of a run a picture keeps (picture.h).
#ifndef ASHLAR_ANALYZER_ANSWERS_PICTURE_PICTURE_LIMITS_H_
#define ASHLAR_ANALYZER_ANSWERS_PICTURE_PICTURE_LIMITS_H_

#include <algorithm>
#include <cstddef>

namespace ashlar::answers {

struct PictureLimits {
  std::size_t observed_moments = 1'000'001;  // a run of fewer events keeps every moment
  std::size_t thinned_moments = 200'000;     // about as many keeps a longer one
  std::size_t what_if_moments = 400'000;     // of all what-ifs of an input together

  // Of an observed run.
  std::size_t MostMoments(std::size_t events) const {
    return events < observed_moments ? observed_moments : std::min(thinned_moments, observed_moments);
  }
};

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_PICTURE_PICTURE_LIMITS_H_
