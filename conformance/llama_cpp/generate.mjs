// llama.cpp's own CUDA build, as node-llama-cpp brings it: loads a model and generates tokens.
//
//   node generate.mjs MODEL.gguf [TOKENS]
import { getLlama } from "node-llama-cpp";

const [model_path, count = "16"] = process.argv.slice(2);
const llama = await getLlama({ gpu: "cuda", build: "never", vramPadding: 0 });
const model = await llama.loadModel({ modelPath: model_path, gpuLayers: "max" });
const context = await model.createContext({ contextSize: 512 });
const sequence = context.getSequence();
let generated = 0;
for await (const token of sequence.evaluate(model.tokenize("hello"), { temperature: 0 })) {
  if (++generated >= Number(count)) break;
}
const state = await llama.getVramState();
console.log(JSON.stringify({
  program: "llama_cpp",
  gpu: llama.gpu,
  devices: await llama.getGpuDeviceNames(),
  generated,
  used: state.used,
}));
await llama.dispose();
process.exit(0);
