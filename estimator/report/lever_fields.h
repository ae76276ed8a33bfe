// The fields of levers and of --fit: what each lever saves, and which sets of them fit.
#ifndef ASHLAR_ESTIMATOR_REPORT_LEVER_FIELDS_H_
#define ASHLAR_ESTIMATOR_REPORT_LEVER_FIELDS_H_

#include "commands/shared/fields.h"
#include "estimator/report/estimate_report.h"

namespace ashlar::report {

template <>
const Fields<estimate::LeverRow>& FieldsOf<estimate::LeverRow>();
template <>
const Fields<estimate::LeverSkipped>& FieldsOf<estimate::LeverSkipped>();
template <>
const Fields<estimate::LeverResult>& FieldsOf<estimate::LeverResult>();
template <>
const Fields<estimate::LargestBatch>& FieldsOf<estimate::LargestBatch>();
template <>
const Fields<estimate::LeverSet>& FieldsOf<estimate::LeverSet>();
template <>
const Fields<estimate::Fit>& FieldsOf<estimate::Fit>();

}  // namespace ashlar::report

#endif  // ASHLAR_ESTIMATOR_REPORT_LEVER_FIELDS_H_
