"""Models that allocate as those of transformers 4.26 to 4.28 do (llama and its kin: 4.40), eagerly.

Names and layout are these files' own. What is kept to the letter is what memory depends on: which operations run in
which order, which values have a name, and until when it holds them. No dropout.
"""

from torch import nn

from distilbert import DistilBert
from gpt import gpt
from llama import RootMeanSquareFromOne, llama
from parts import RootMeanSquare
from t5 import T5

FAMILIES = {
    "gpt2": gpt,
    "gpt_neo": gpt,
    "llama": llama,
    "qwen2": llama,
    "mistral": llama,
    "gemma": llama,
    "t5": T5,
    "distilbert": DistilBert,
}
NORMS = (nn.LayerNorm, RootMeanSquare, RootMeanSquareFromOne)
