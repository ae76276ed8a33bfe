// Whether a function that stands in was called by the program itself, and not from within another one: the runtime
// calls the driver, and a library of ours calls both.
//
//   const OuterCall call;
//   if (!call.is_outermost()) return CallReal(...);
//
// Thread rule: each thread counts for itself.
#ifndef ASHLAR_HOLLOW_INTERPOSE_OUTER_CALL_H_
#define ASHLAR_HOLLOW_INTERPOSE_OUTER_CALL_H_

namespace ashlar::interpose {

// How many such functions the thread is in.
extern thread_local int t_depth;

class OuterCall {
 public:
  OuterCall() : is_outermost_(t_depth++ == 0) {}
  ~OuterCall() { --t_depth; }
  OuterCall(const OuterCall&) = delete;
  OuterCall& operator=(const OuterCall&) = delete;

  bool is_outermost() const { return is_outermost_; }

 private:
  const bool is_outermost_;
};

}  // namespace ashlar::interpose

#endif  // ASHLAR_HOLLOW_INTERPOSE_OUTER_CALL_H_
