"""A model for llama.cpp whose weights are zeros, which the file system does not store: 2.5 GB that take a few KB.

    python3 make_gguf.py OUT.gguf

The format is GGUF, version 3 (ggml's docs/gguf.md): a header, key-value pairs, the tensors' places, the tensors.
"""
import struct
import sys

ALIGNMENT = 32
FLOAT32, FLOAT16 = 0, 1  # ggml_type
UINT32, FLOAT, STRING, ARRAY, INT32 = 4, 6, 8, 9, 5  # gguf_type

WIDTH, LAYERS, HEADS, HIDDEN, VOCABULARY, CONTEXT = 2048, 22, 16, 5632, 32000, 2048


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def number(key, value):
    return pair(key, UINT32, struct.pack("<I", value))


def array(key, kind, items):
    return pair(key, ARRAY, struct.pack("<IQ", kind, len(items)) + b"".join(items))


def tokens():
    """(text, type) of each: unknown, begin, end, the 256 bytes, then words that nobody says."""
    control, byte, unknown, normal = 3, 6, 2, 1
    known = [("<unk>", unknown), ("<s>", control), ("</s>", control)]
    known += [("<0x%02X>" % value, byte) for value in range(256)]
    return known + [("w%d" % i, normal) for i in range(VOCABULARY - len(known))]


def pairs():
    vocabulary = tokens()
    return [
        pair("general.architecture", STRING, text("llama")),
        pair("general.name", STRING, text("zeros")),
        number("general.file_type", 1),
        number("general.alignment", ALIGNMENT),
        number("llama.block_count", LAYERS),
        number("llama.context_length", CONTEXT),
        number("llama.embedding_length", WIDTH),
        number("llama.feed_forward_length", HIDDEN),
        number("llama.attention.head_count", HEADS),
        number("llama.attention.head_count_kv", HEADS),
        number("llama.rope.dimension_count", WIDTH // HEADS),
        number("llama.vocab_size", VOCABULARY),
        pair("llama.attention.layer_norm_rms_epsilon", FLOAT, struct.pack("<f", 1e-5)),
        pair("tokenizer.ggml.model", STRING, text("llama")),
        array("tokenizer.ggml.tokens", STRING, [text(word) for word, _ in vocabulary]),
        array("tokenizer.ggml.scores", FLOAT, [struct.pack("<f", -float(i)) for i in range(len(vocabulary))]),
        array("tokenizer.ggml.token_type", INT32, [struct.pack("<i", kind) for _, kind in vocabulary]),
        number("tokenizer.ggml.bos_token_id", 1),
        number("tokenizer.ggml.eos_token_id", 2),
    ]


def tensors():
    """(name, shape, type), the innermost dimension first."""
    yield "token_embd.weight", (WIDTH, VOCABULARY), FLOAT16
    for layer in range(LAYERS):
        block = "blk.%d." % layer
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield block + name + ".weight", (WIDTH, WIDTH), FLOAT16
        yield block + "ffn_gate.weight", (WIDTH, HIDDEN), FLOAT16
        yield block + "ffn_up.weight", (WIDTH, HIDDEN), FLOAT16
        yield block + "ffn_down.weight", (HIDDEN, WIDTH), FLOAT16
        yield block + "attn_norm.weight", (WIDTH,), FLOAT32
        yield block + "ffn_norm.weight", (WIDTH,), FLOAT32
    yield "output_norm.weight", (WIDTH,), FLOAT32
    yield "output.weight", (WIDTH, VOCABULARY), FLOAT16


def aligned(size):
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def main(path):
    places, end = [], 0
    for name, shape, kind in tensors():
        size = 4 if kind == FLOAT32 else 2
        for dimension in shape:
            size *= dimension
        dimensions = struct.pack("<I%dQ" % len(shape), len(shape), *shape)
        places.append(text(name) + dimensions + struct.pack("<IQ", kind, end))
        end += aligned(size)
    known = pairs()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(places), len(known)) + b"".join(known) + b"".join(places)
    with open(path, "wb") as out:
        out.write(head)
        out.truncate(aligned(len(head)) + end)


if __name__ == "__main__":
    main(sys.argv[1])
