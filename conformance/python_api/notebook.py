"""A notebook executed by nbclient in a real kernel; prints what held of its cells.

argv: here | without a GPU | on_oom, and a file for the HTML, for the eye.
"""
import json
import sys

import nbclient
import nbformat

MODEL = """
import torch
class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
    def forward(self, x): return self.linear(x)
width = 2048
"""
FITS = "net = Net(width).cuda()\nnet(torch.randn(64, width, device='cuda')).sum().backward()\nprint('ran')"
FAILS = "big = [torch.empty(1 << 30, dtype=torch.uint8, device='cuda') for _ in range(5)]"


PROGRAM = "id=&quot;packed-program&quot;"  # of a page


def outputs(cell, kind):
    return [one for one in cell.outputs if one.output_type == kind]


def html(cell):
    return " ".join(one.data.get("text/html", "") for one in outputs(cell, "display_data"))


def text(cell):
    return "".join(one.text for one in outputs(cell, "stream"))


def execute(*sources):
    """The cells, and what stopped them."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    try:
        nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    except nbclient.exceptions.CellExecutionError as error:
        return book.cells, str(error)
    return book.cells, ""


def three_lines():
    """The error's own output ends with the explanation."""
    cells, stopped = execute("import ashlar_gpu\nashlar_gpu.on_oom()\nimport torch", FAILS)
    shown = "\n".join("\n".join(one.traceback) for one in outputs(cells[1], "error"))
    print(json.dumps({"cells": {
        "the notebook stopped": "CUDA out of memory" in stopped,
        "its error ends with the explanation": 0 < shown.rfind("CUDA out of memory") < shown.find("OUT OF MEMORY  device 0"),
        "by the cells' numbers": "In[2].py:1" in shown and "ipykernel" not in shown[shown.find("OUT OF MEMORY  device 0"):],
    }}))


def main(where):
    if where == "on_oom":
        return three_lines()
    magic = "%%ashlar" if where == "here" else "%%ashlar --capacity 4GiB"
    cells, stopped = execute(MODEL, "%load_ext ashlar_gpu", f"{magic}\n{FITS}", f"{magic}\n{FAILS}", "print('after')")
    fits, fails, after = cells[2:]
    errors = outputs(fails, "error")
    shown = "\n".join("\n".join(one.traceback) for one in errors) + text(fails)
    if len(sys.argv) > 2:  # a file for the eye
        with open(sys.argv[2], "w") as out:
            out.write(html(fits) + html(fails))
    print(json.dumps({"cells": {
        "the cell that fits ran": "ran" in text(fits),
        "and is explained": "live tensors" in html(fits) and "&#9632;" in html(fits),
        "by its page": "<iframe" in html(fits) and PROGRAM in html(fits),
        "whose program lies in the first output": "<iframe" in html(fails) and PROGRAM not in html(fails),
        "an output after it is small": len(html(fails)) <= 40_000,
        "the heading is the cell and the verdict": ">In[4]: " + ("OUT OF MEMORY" if where == "here" else "Dry run: does not fit") in html(fails),
        "the cell that fails shows its error": "OutOfMemoryError" in shown,
        "after the answer, once": [one.output_type for one in fails.outputs if one.output_type != "stream"] == ["display_data", "error"],
        "without our own lines": where != "here" or "ashlar_gpu/_" not in shown,
        "by the cells' numbers": where != "here" or "In[4].py:1" in html(fails),
        "and is explained too": "1.00 GiB requested" in html(fails),
        "and stops the notebook": [one.ename for one in errors][-1:] == ["CellFailed"] and "CUDA out of memory" in stopped and not after.outputs,
    }}))


if __name__ == "__main__":
    main(sys.argv[1])
