// The events that the sentences of an explanation name, so that a reader of a picture can go there.
//
//   NamedEvents(explanation)   {812, 6768} of "... since event 812", "the out-of-memory error, event 6,768"
#ifndef ASHLAR_ANALYZER_ANSWERS_PICTURE_NAMED_EVENTS_H_
#define ASHLAR_ANALYZER_ANSWERS_PICTURE_NAMED_EVENTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "analyzer/answers/explanation.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::answers {

// Numbers that follow "event " or "events ", digits grouped by commas or not; of "events 12 to 34" both.
void AddNamedEvents(absl::string_view sentence, std::vector<timeline::EventIndex>& out);

// Of all sentences and figures of the explanation, ascending, each once.
std::vector<timeline::EventIndex> NamedEvents(const Explanation& explanation);

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_PICTURE_NAMED_EVENTS_H_
