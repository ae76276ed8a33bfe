// Where NVTX looks for a tool that is linked in. NVTX's headers define the same symbol weakly as nullptr, so this must be
// a file without them.
namespace ashlar::tests {
int InitializeTool(void* module_info);  // nvtx_pools_test.cc
}

extern "C" {
int (*InitializeInjectionNvtxExtension_fnptr)(void*) = ashlar::tests::InitializeTool;
}
