"""What Ashlar does inside a Python program: memory histories, and the values of small tensors on a hollow device.

start       what is installed, by the settings of the environment
settings    those settings
imports     a call after a module's import
history     recording, and what a process leaves behind
observer    what is asked of PyTorch's memory, which may fail: its history, snapshots of failures; the package has it too
holders     who holds each live byte, by its Python name; the package has it too
signals     the same at SIGUSR1 and SIGTERM
peaks       the peaks of a process, resets by the program or not
held_peaks  when who holds the memory is looked at: at new peaks
library     the preloaded library's functions
values      operations on small tensors are run for real, beside their launch
reads       what lines of the program read, as the user gives it
routing     the choices of routers of experts, by a rule
schemas     what an operation reads, writes and makes
aliases     a CPU tensor over the bytes of a device tensor
known       which bytes are known, and which of them are still in use
composite   operations that a mode puts together otherwise
backward    no values while the autograd engine runs
compiled    what compiled code, graphs and kernels written in Python leave unknown
told        what a library says of its own memory, as a file
sglang_end  SGLang's scheduler ends before it is killed
sglang_kernels kernels that SGLang could not build
sglang_memory what SGLang took for its KV cache
vllm_memory what vLLM measured of itself
lines       the line of the program under way
ranks       one rank of a world whose other ranks have no process; the package has none of it
apart       a program that is run again writes and sends nothing
fit         changes of the program, made from outside
fresh       initialisers of large CPU tensors that do nothing
"""
