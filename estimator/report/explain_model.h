// Joins an explanation with the description of the model that ran.
#ifndef ASHLAR_ESTIMATOR_REPORT_EXPLAIN_MODEL_H_
#define ASHLAR_ESTIMATOR_REPORT_EXPLAIN_MODEL_H_

#include "commands/explain/explanation.h"
#include "estimator/model.h"

namespace ashlar::estimate {

// One more sentence of evidence: the parameters whose size, in 4 or in 2 bytes an element, the failed request can have
// had: itself, its gradient, a state or a temporary of its update. Nothing where no request failed.
void AddModel(const Model& model, answers::Explanation& explanation);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_REPORT_EXPLAIN_MODEL_H_
