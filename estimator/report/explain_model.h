// Joins an explanation with the description of the model that ran.
#ifndef ASHLAR_ESTIMATOR_REPORT_EXPLAIN_MODEL_H_
#define ASHLAR_ESTIMATOR_REPORT_EXPLAIN_MODEL_H_

#include <optional>
#include <string>

#include "commands/explain/failure.h"
#include "estimator/model.h"

namespace ashlar::estimate {

// A sentence of evidence: the parameters whose size, in 4 or in 2 bytes an element, the failed request can have had:
// itself, its gradient, a state or a temporary of its update. nullopt where no request failed.
std::optional<std::string> ModelEvidence(const Model& model, const answers::Failure& failure);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_REPORT_EXPLAIN_MODEL_H_
