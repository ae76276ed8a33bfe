"""Changes of a PyTorch program, made from outside: it runs with smaller batches, checkpointed blocks and so on, its files untouched.

table        the changes, by name
change       what each of them has: does it apply, apply it, what the user writes
program      the program under way, and what it tells the changes
start        what is changed in an interpreter, by names
facts        what a run leaves for `ashlar fit`
held         what each step of the optimizer needs
operations   what a step computes and moves
lines        the line of the program under way
edits        what a change writes into the source at such a place
source       a file of the program, as text that it is written into
patch        what all changes of a run write, as a diff
drawn        large random fills in host memory, which later runs leave out
samples      how long they are, and batches in another order
accumulation parts of batches, and the steps that wait for the last of them
batch, checkpointing, precision, optimizers, evaluation, gradients, outputs, collection, attention, loss, allocator, embeddings,
freezing, lengths, order, serving
             the changes themselves
engine       vLLM's offline engine, and its changes
hooks        a call in the place of a function

The folder is used twice, and imports nothing of ours beside it: by what `ashlar fit` puts into a program, and, as
`ashlar_gpu.fit`, by the package.
"""
