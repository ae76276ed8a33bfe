// The one function of the stand-in that the hollow device asks.
extern "C" __attribute__((visibility("default"))) int cudaRuntimeGetVersion(int* version) {
  *version = ASHLAR_TEST_CUDART;
  return 0;
}
