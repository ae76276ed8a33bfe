// Where NVTX looks for a tool that is linked in. NVTX's headers define the same symbol weakly as nullptr, so this must
// be a file without them.
struct nvtxExtModuleInfo_t;
namespace ashlar::tests {
int InitializeTool(nvtxExtModuleInfo_t* module);  // nvtx_pools_test.cc
}

extern "C" {
int (*InitializeInjectionNvtxExtension_fnptr)(nvtxExtModuleInfo_t*) = ashlar::tests::InitializeTool;
}
