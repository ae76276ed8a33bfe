"""Texts of PYTORCH_CUDA_ALLOC_CONF to ask PyTorch about: every key that its documents name, with values of every kind,
right and wrong, and the ways in which pairs may be written.

    texts()  ->  ["", "max_split_size_mb:128", ...], each once
"""

SIZES = ("max_split_size_mb", "max_non_split_rounding_mb", "large_segment_size_mb")
HOST_SIZES = ("pinned_reserve_segment_size_mb", "pinned_max_cached_size_mb", "pinned_max_round_threshold_mb",
              "roundup_bypass_threshold_mb")
FLAGS = ("expandable_segments", "throw_on_cudamalloc_oom", "release_lock_on_cudamalloc", "release_lock_on_hipmalloc",
         "pinned_use_cuda_host_register", "pinned_use_hip_host_register", "pinned_use_background_threads",
         "graph_capture_record_stream_reuse", "pinned_free_catch_all")
SHARES = ("garbage_collection_threshold", "per_process_memory_fraction")
RESERVES = ("0.5", "64g", "64G", "64 g", "1.125", "0", "-1", "lots", "G", "", "[0.5]", "0.5:", "1e400", "0.5x")
OF_OTHERS = ("expandable_segments_reserve_by_class:1", "expandable_segments_reserve_by_class:[1:0.5]", "use_cuda_host_register:True", "some_future_key:1",
             "some_future_key:[1,2]", "Max_split_size_mb:64", "MAX_SPLIT_SIZE_MB:64", "max-split-size-mb:64",
             "max_split_size:64", "roundup_power2_division:4", "segment_size_mb:20", "page_size:1g", "compat:torch-2.10",
             "policy:ashlar", "memory_limit_mb:64", "pin_memory_expandable_segments:True")

WHOLE = ("0", "1", "10", "11", "19", "20", "21", "64", "512", "2147483647", "2147483648", "17592186044415",
         "17592186044416", "18446744073709551615", "18446744073709551616", "-1", "-64", "-18446744073709551616", "+64",
         "64.0", "20.9", "1e3", "0x40", "0100", "128MB", "128 MB", "1_000", "", "x", "True", "nan", "[64]", "64:", "'64'")
FEW_WHOLE = ("0", "1", "3", "64", "2147483648", "-1", "64MB", "", "x", "[64]", "64:")
SHARE = ("0", "0.0", "-0", "1e-9", "0.5", ".5", "5e-1", "0.999", "1", "1.0", "1.000001", "2", "-0.1", "0.8f", "80%", "+0.5",
         "nan", "inf", "1e-400", "1e-310", "1e400", "0x1p-1", "0x", "", "half", "[0.5]", "0.8:", "0 . 5", "1e", "0.5.5")
FLAG = ("True", "False", "true", "FALSE", "1", "yes", "", "Tr ue", "[True]", "True:", "TrueFalse")
DIVISIONS = ("1", "2", "8", "16", "0", "3", "-4", "-1", "x", "", "4.0", "4x", "64", "4294967296", "[4]", "[]", "[", "]",
             "[:]", "[1:8]", "[4:2]", "[4:2,32:8]", "[4:2,1:8]", "[4:2,4:8]", "[4:0,8:2]", "[1:8,4:4,>:2]", "[>:4]",
             "[>:4,4:2]", "[256:1,512:2,1024:4,>:8]", "[64:8,128:8,256:4,>:1]", "[32768:2,>:8]", "[65536:2,>:8]",
             "[131072:2]", "[3:2]", "[4:3]", "[0:2]", "[-4:2]", "[4:-2]", "[4:x]", "[x:4]", "[>:3]", "[4:2:1]", "[4:2,]",
             "[,4:2]", "[4:2,,8:4]", "[4:2,8]", "[4:2", "4:2]", "[[4:2]]", "[4:2]]", "[ 4 : 2 , 32 : 8 ]", "[4:2],",
             "[4:2][8:4]", "[4:2MB]", "[4MB:2]", "[4:2;8:4]", "[4:2:8:4]", "[4,2,8,4]", "[4:2],max_split_size_mb:64",
             "[4:4294967296]", "[4294967296:4]")
BACKENDS = ("native", "Native", "native ", "", "cudaMallocAsync", "cudamallocasync", "hipMallocAsync", "jemalloc", "[native]",
            "native:", "1")
SHAPES = ("", " ", ",", ",,", ":", "::", "[", "]", "[]", "[,]", ",:", "max_split_size_mb", "max_split_size_mb:64,",
          "max_split_size_mb:64,,", ",max_split_size_mb:64", "max_split_size_mb:64,,expandable_segments:True",
          " max_split_size_mb : 64 ", "max_split_size_mb:\t64", "max_split_size_mb:64\n", "\nmax_split_size_mb:64",
          "max_split_size_mb:64;expandable_segments:True", "max_split_size_mb=64", "max_split_size_mb 64",
          "max_split_size_mb::64", "max_split_size_mb,64", "max_split_size_mb[64", "max_split_size_mb:64 expandable_segments:True",
          "max_split_size_mb:64:expandable_segments:True", "max_split_size_mb:64[expandable_segments:True",
          "\"max_split_size_mb:64\"", "max_split_size_mb:64]", "m ax_split_size_mb:64", "max_split_size_mb:64,expandable_segments",
          "max_split_size_mb:64,expandable_segments:", "max_split_size_mb:,expandable_segments:True", ":64", "64",
          "max_split_size_mb:64,some_future_key", "some_future_key", "max_split_size_mb:64,x:1,expandable_segments:True")
TOGETHER = ("max_split_size_mb:64,max_split_size_mb:128", "max_split_size_mb:128,max_split_size_mb:64",
            "max_split_size_mb:64,max_split_size_mb:x", "max_split_size_mb:19,max_split_size_mb:64",
            "expandable_segments:True,expandable_segments:False", "garbage_collection_threshold:0.5,garbage_collection_threshold:0.6",
            "roundup_power2_divisions:4,roundup_power2_divisions:[4:2]", "roundup_power2_divisions:[4:2],roundup_power2_divisions:[8:4]",
            "roundup_power2_divisions:[4:2,32:8],garbage_collection_threshold:0.7,max_split_size_mb:256",
            "large_segment_size_mb:64,max_split_size_mb:32", "max_split_size_mb:32,large_segment_size_mb:64",
            "max_split_size_mb:12,large_segment_size_mb:12", "large_segment_size_mb:12,max_split_size_mb:12",
            "large_segment_size_mb:12,large_segment_size_mb:64,max_split_size_mb:20",
            "large_segment_size_mb:64,large_segment_size_mb:12,max_split_size_mb:20",
            "max_non_split_rounding_mb:32,large_segment_size_mb:64", "max_non_split_rounding_mb:70,large_segment_size_mb:64",
            "backend:native,max_split_size_mb:64", "backend:native,backend:native", "backend:cudaMallocAsync,max_split_size_mb:64",
            "expandable_segments:True,max_split_size_mb:64,garbage_collection_threshold:0.9",
            "expandable_segments:True,pinned_use_background_threads:True", "per_process_memory_fraction:0.5,throw_on_cudamalloc_oom:True",
            "pinned_use_cuda_host_register:True,pinned_num_register_threads:8", "garbage_collection_threshold:0.6,max_split_size_mb:128",
            "expandable_segments:True,release_lock_on_cudamalloc:True", "expandable_segments:False,max_split_size_mb:512,roundup_power2_divisions:8",
            "pinned_max_round_threshold_mb:1,pinned_max_cached_size_mb:1", "expandable_segments:True,pinned_reserve_segment_size_mb:64")
THREADS = ("0", "1", "2", "3", "8", "64", "128", "129", "256", "-1", "-8", "x", "", "8.0", "8x", "4294967304")


def texts():
    out = [*SHAPES, *TOGETHER, *OF_OTHERS]
    for keys, values in ((SIZES, WHOLE), (HOST_SIZES, FEW_WHOLE), (FLAGS, FLAG), (SHARES, SHARE),
                         (("expandable_segments_reserve",), RESERVES), (("roundup_power2_divisions",), DIVISIONS),
                         (("backend",), BACKENDS),
                         (("pinned_num_register_threads",), THREADS)):
        out += [f"{key}:{value}" for key in keys for value in values]
    return list(dict.fromkeys(out))
