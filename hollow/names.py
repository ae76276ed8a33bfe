#!/usr/bin/env python3
"""Makes hollow/api/names/: every public function of NVIDIA's libraries, and what the hollow device answers for it.

  hollow/names.py --out hollow/api/names LABEL=FOLDER [LABEL=FOLDER ...]

Each FOLDER holds a release: headers, shared libraries, or `nm -D --defined-only` of one in a file LIBRARY.nm. The names
are the union over all of them; a name that no longer is in one release stays. Same input, same output.

A line is one of
  ASHLAR_REFUSED(name, status)    counted by name, answers that it is not supported
  ASHLAR_LAUNCHED(name)           work for the device that is accepted and not run
  ASHLAR_SIZED(name, bits, place...)  writes the size of a workspace to the host addresses that are its arguments at
                                      these places, counted from 0 among those that are passed as integers
A surface's own function of the same name wins over its line. LIBRARIES says which of them are what, and why.
"""
import argparse
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field


@dataclass
class Library:
    name: str      # of the .inc
    prefix: str    # a regular expression for its names
    objects: str   # and one for its shared libraries
    headers: str   # and one for its headers
    refused: int   # the status of its own for "not supported"
    source: str    # where that number is public
    launched: list = field(default_factory=list)  # (names, why they are work for the device that answers nothing else)
    but: str = ''                                 # names that are not, though a rule above has them
    macros_exported: bool = False  # the plain name of a versioned function is exported as well
    also: tuple = ()  # names that no header has
    sized: str = ''                 # names that write the size of a workspace to the host


DTYPE = '[SDCZ]'
# What only writes device memory. `info` and `work` of these are device pointers.
BLAS = (r'(axpy|copy|scal|sscal|dscal|swap|rot|srot|drot|rotm|gemv|gbmv|trmv|tbmv|tpmv|trsv|tbsv|tpsv|symv|sbmv|spmv|'
        r'hemv|hbmv|hpmv|geru?|gerc|syr2?|spr2?|her2?|hpr2?|gemm3?m?|syrk|herk|syr2k|her2k|syrkx|herkx|symm|hemm|trsm|'
        r'trmm|geam|dgmm|tpttr|trttp)')

LIBRARIES = [
    Library('runtime', r'(?:__)?cuda[A-Z]\w*', r'libcudart\.so[.\d]*', r'(cuda_runtime_api|cuda_profiler_api)\.h', 801,
            'driver_types.h: cudaErrorNotSupported'),
    Library('driver', r'cu(?!da)[A-Z]\w*', r'libcuda\.so[.\d]*',
            r'(cuda|cudaProfiler|cudaGL|cudaEGL|cudaVDPAU|cudaTypedefs|cuda(Profiler|GL|EGL|VDPAU)Typedefs)\.h', 801,
            'cuda.h: CUDA_ERROR_NOT_SUPPORTED', macros_exported=True, also=('cuGetExportTable',)),
    Library('nvml', r'nvml[A-Z]\w*', r'libnvidia-ml\.so[.\d]*', r'nvml\.h', 3, 'nvml.h: NVML_ERROR_NOT_SUPPORTED',
            macros_exported=True),
    Library('cublas', r'cublas(?!Lt)[A-Z]\w*', r'libcublas\.so[.\d]*', r'(cublas|cublas_api|cublas_v2|cublasXt)\.h', 15,
            'cublas_api.h: CUBLAS_STATUS_NOT_SUPPORTED', [
                (rf'cublas{DTYPE}{BLAS}(_v2)?(_64)?', 'levels 1 to 3, geam, dgmm, tpttr, trttp: results on the device'),
                (rf'cublas({DTYPE}|HSH|HSS|TSS|TST)(gemv|gemm|gemm3m|trsm)(Strided|Grouped)?Batched(_64)?',
                 'batched: arrays of pointers and results on the device'),
                (rf'cublas{DTYPE}(getrf|getri|matinv)Batched', 'batched: infoArray is on the device'),
                (r'cublas(Gemm|GemmBatched|GemmStridedBatched|GemmGroupedBatched|Axpy|Scal|Rot|Rotm|Copy|Swap|[SC]gemm|'
                 r'Cgemm3m|C(herk|syrk)(3m)?)Ex(_64)?', 'the same with types as arguments'),
                (r'cublasHgemm(Batched|StridedBatched)?(_64)?', 'half precision matrix products'),
                (r'cublasUint8gemmBias', 'a matrix product'),
            ]),
    Library('cublaslt', r'cublasLt[A-Z]\w*', r'libcublasLt\.so[.\d]*', r'cublasLt\.h', 15,
            'cublas_api.h: CUBLAS_STATUS_NOT_SUPPORTED'),
    Library('cudnn', r'cudnn[A-Z]\w*', r'libcudnn(_graph|_ops|_cnn|_adv|_ops_infer|_ops_train|_cnn_infer|_cnn_train|'
            r'_adv_infer|_adv_train)?\.so[.\d]*', r'cudnn(_\w+)?\.h', 3000,
            'cudnn_graph.h: CUDNN_STATUS_NOT_SUPPORTED; 9 in cuDNN 8', [
                (r'cudnn(Activation|Softmax|Pooling|LRNCrossChannel|DivisiveNormalization|Dropout|BatchNormalization|'
                 r'Convolution|SpatialTfGridGenerator|SpatialTfSampler|RNN|MultiHeadAttn|NormalizationF|Normalization)'
                 r'(Forward|Backward)(\w*)', 'layers: results on the device'),
                (r'cudnn(AddTensor|OpTensor|SetTensor|ScaleTensor|TransformTensor|TransformTensorEx|TransformFilter|'
                 r'ReduceTensor|ReorderFilterAndBias|ConvolutionBiasActivationForward|NormalizationForwardInference|'
                 r'NormalizationForwardTraining|NormalizationBackward|Im2Col|CTCLoss_v8|BuildRNNDynamic|'
                 r'FusedOpsExecute)', 'tensor operations: results on the device'),
                (r'cudnnCTCLoss', 'costs and gradients on the device'),
            ], but=r'cudnn\w*(Get|Create|Destroy|Algorithm)\w*', sized=r'cudnn\w*(Size|Sizes|AttnBuffers)(_v\d)?'),
    Library('cusparse', r'cusparse(?!Lt)[A-Z]\w*', r'libcusparse\.so[.\d]*', r'cusparse(_v2)?\.h', 10,
            'cusparse.h: CUSPARSE_STATUS_NOT_SUPPORTED', [
                (rf'cusparse({DTYPE}|X)\w*(_solve|_analysis)', 'solvers: results on the device, state in their info'),
                (rf'cusparse{DTYPE}(bsrmv|bsrxmv|bsrmm|gemvi|gemmi|gtsv2|gtsv2_nopivot|gtsv2StridedBatch|'
                 r'gtsvInterleavedBatch|gpsvInterleavedBatch|axpyi|gthr|gthrz|roti|sctr|csrmv|csrmm2?|csrgeam2|'
                 r'csr2dense|'
                 r'csc2dense|csr2bsr|bsr2csr|gebsr2csr|gebsr2gebsr|csr2gebsr|gebsr2gebsc|csr2csru|csru2csr|'
                 r'csrilu02|csric02|bsrilu02|bsric02|dense2csr|dense2csc|csr2csr_compress|csrgemm2)',
                 'results on the device'),
                (r'cusparse(SpMV|SpMM|SDDMM|SpSV_solve|SpSM_solve|SpSV_analysis|SpSM_analysis|SDDMM_preprocess|'
                 r'SpMV_preprocess|SpMM_preprocess|Axpby|Gather|Scatter|Rot|SpSV_updateMatrix|SpSM_updateMatrix|'
                 r'SparseToDense|DenseToSparse_convert|Csr2cscEx2|GemmiEx)',
                 'the generic interface: results on the device'),
                (r'cusparse(CreateIdentityPermutation|Xcoo2csr|Xcsr2coo|Xcoosort(ByRow|ByColumn)|Xcsrsort|Xcscsort|'
                 r'Xgebsr2csr)', 'index arrays on the device'),
            ], sized=r'cusparse\w*(bufferSize|_bufferSize_\w+|bufferSizeExt|BufferSize)'),
    Library('cusolver', r'(?:cusolver[A-Z]\w*|cudlibMg\w+|cudaLibMg\w+)', r'libcusolver(Mg)?\.so[.\d]*',
            r'cusolver(Dn|Mg|Rf|Sp|_common|Sp_LOWLEVEL_PREVIEW)\.h', 9,
            'cusolver_common.h: CUSOLVER_STATUS_NOT_SUPPORTED', [
                (rf'cusolverDn({DTYPE}|X)(potrf|potrs|potri|trtri|lauum|getrf|getrs|geqrf|geqrs|orgqr|ungqr|'
                 r'ormqr|unmqr|'
                 r'sytrf|sytrs|sytri|gebrd|orgbr|ungbr|sytrd|hetrd|orgtr|ungtr|ormtr|unmtr|gesvd|gesvdp|gesvdr|gesvdj|'
                 r'syevd|heevd|syevdx|heevdx|sygvd|hegvd|sygvdx|hegvdx|sygvj|hegvj|syevj|heevj|laswp|larft|geev|'
                 r'gesvdaStridedBatched|gesvdjBatched|syevjBatched|heevjBatched|syevBatched|potrfBatched|potrsBatched)',
                 'factorisations and solvers: results and info on the device'),
                (r'cusolverDn(Getrf|Getrs|Potrf|Potrs|Geqrf|Gesvd|Syevd)',
                 'the same, the generic interface of CUDA 11'),
            ], but=r'cusolverDn(\w*evdx|\w*gvdx|Xgesvdp)', sized=r'cusolver(Dn|Mg)\w*_bufferSize'),
    Library('cufft', r'cufft(?!w_)[A-Z]\w*', r'libcufft\.so[.\d]*', r'cufft(Xt)?\.h', 16,
            'cufft.h: CUFFT_NOT_SUPPORTED', [
                (r'cufftExec(C2C|R2C|C2R|Z2Z|D2Z|Z2D)', 'transforms: results on the device'),
                (r'cufftXtExec', 'transforms: results on the device'),
            ]),
    Library('curand', r'curand[A-Z]\w*', r'libcurand\.so[.\d]*', r'curand\.h', 999,
            'curand.h: CURAND_STATUS_INTERNAL_ERROR', [
                (r'curandGenerate(Long|Uniform|UniformDouble|Normal|NormalDouble|LogNormal|LogNormalDouble|Poisson|'
                 r'PoissonMethod|Binomial|BinomialMethod|LongLong|Seeds)?', 'numbers written to the device'),
            ]),
    Library('cusparselt', r'cusparseLt[A-Z]\w*', r'libcusparseLt\.so[.\d]*', r'cusparseLt\.h', 10,
            'cusparse.h: CUSPARSE_STATUS_NOT_SUPPORTED'),
    Library('nccl', r'p?nccl[A-Z]\w*', r'libnccl\.so[.\d]*', r'nccl\.h', 5, 'nccl.h: ncclInvalidUsage'),
]

# A function of another type answers 0, which is no number, no text and no version of anything.
STATUS = re.compile(r'(\w*Status_t|\w*Result_t|cudaError_t|CUresult|nvmlReturn_t|cufftResult|curandStatus)')
PROTOTYPE = r'([\w][\w\s\*]*?[\s\*])({prefix})\s*\(([^;{{}}]*?)\)\s*;'
# Marks that a library puts before or after its functions.
MARK = re.compile(r'\b(CUDARTAPI(_CDECL)?|CUDAAPI|CUBLASWINAPI|CUBLASAPI|CUDNNWINAPI|CUSPARSEAPI|CUSOLVERAPI|CUFFTAPI|'
                  r'CURANDAPI|DECLDIR|extern|__host__|__cudart_builtin__|__CUDA_DEPRECATED|CUDNN_DEPRECATED|static|'
                  r'inline|'
                  r'__dv|CUSPARSE_DEPRECATED(_REPLACE_WITH)?(\([^)]*\))?|CUDA_CB|CUDNN_DEPRECATED_FUNC)\b|"C"|'
                  r'__attribute__\s*\(\(.*?\)\)')


@dataclass
class Found:
    """What the folders have of one library."""

    names: set = field(default_factory=set)
    prototypes: dict = field(default_factory=dict)  # name -> (type, [argument])
    files: set = field(default_factory=set)


def public_names(library, text, found):
    """What a header declares, and what its macros map from and to."""
    text = re.sub(r'/\*.*?\*/|//[^\n]*', ' ', text, flags=re.S)
    per_thread = {}
    for one, mark, other in re.findall(r'#\s*define\s+(\w+)\s+(__CUDA_API_PT[DS][SZ]|__CUDART_API_PT[DS][SZ]|'
                                       r'PTDS|PTSZ)?\(?\s*(\w+)', text):
        if re.fullmatch(library.prefix, one) and re.fullmatch(library.prefix, other):
            found.names.add(other)
            if library.macros_exported:
                found.names.add(one)
            if mark:
                per_thread[other] = '_ptds' if 'PTDS' in mark else '_ptsz'
    found.names.update(name + end for name, end in per_thread.items())
    if library.name == 'driver':
        typedefs = re.findall(r'PFN_(cu\w+?)(?:_v\d+)?(_ptds|_ptsz)?\b', text)
        found.names.update(name + end for name, end in typedefs if re.fullmatch(library.prefix, name))
    code = re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', ' ', text, flags=re.M)
    code = MARK.sub(' ', code)
    for kind, name, arguments in re.findall(PROTOTYPE.format(prefix=library.prefix), code):
        if 'typedef' in kind or 'return' in kind.split():
            continue
        found.names.add(name)
        found.prototypes.setdefault(name, (' '.join(kind.split()), [' '.join(a.split()) for a in arguments.split(',')]))


def exported(path):
    """The names that a shared library defines."""
    if path.endswith('.nm'):
        with open(path, encoding='utf-8') as file:
            lines = file.read()
    else:
        lines = subprocess.run(['nm', '-D', '--defined-only', path], capture_output=True, text=True, check=True).stdout
    return {m.group(1) for m in re.finditer(r'^\S* ?[TWVi] ([^\s@]+)', lines, flags=re.M)}


def look(folders):
    """What each library has in all of the folders."""
    found = {library.name: Found(names=set(library.also)) for library in LIBRARIES}
    for label, folder in folders:
        for root, inner, files in os.walk(folder):
            inner.sort()
            for name in sorted(files):
                path = os.path.join(root, name)
                for library in LIBRARIES:
                    mine = found[library.name]
                    if re.fullmatch(library.headers, name):
                        with open(path, encoding='utf-8', errors='replace') as file:
                            public_names(library, file.read(), mine)
                    elif re.fullmatch(library.objects + r'(\.nm)?', name):
                        mine.names |= {n for n in exported(path) if re.fullmatch(library.prefix, n)}
                    else:
                        continue
                    mine.files.add((label, re.sub('.nm$', '', name)))
    return found


def passed_as_integer(argument):
    """Not a float, a double or a complex number by value, nor a struct of such: those travel elsewhere."""
    return '*' in argument or not re.match(r'(const )?(float|double|cu\w*Complex|cufft\w*)\b', argument)


def size_places(prototype):
    """Where a size is written: (bits, [place])."""
    places, bits, place = [], 0, 0
    for argument in prototype[1]:
        size = re.fullmatch(r'(size_t|int|int64_t)\s*\*\s*(\w+)', argument)
        if size and re.search(r'(?i)work|buffer|size|bytes', size.group(2)):
            places.append(place)
            bits = 32 if size.group(1) == 'int' else 64
        place += passed_as_integer(argument)
    return bits, places


def line_of(library, name, found):
    prototype = found.prototypes.get(name) or found.prototypes.get(re.sub(r'_(64|v2)$', '', name))
    if library.sized and re.fullmatch(library.sized, name) and prototype:
        bits, places = size_places(prototype)
        if places:
            return f'ASHLAR_SIZED({name}, {bits}, {", ".join(map(str, places))})'
    legacy = library.name == 'cublas' and name + '_v2' in found.names  # takes no handle: the interface before version 4
    launched = any(re.fullmatch(rule, name) for rule, _ in library.launched)
    if launched and not legacy and not (library.but and re.fullmatch(library.but, name)):
        return f'ASHLAR_LAUNCHED({name})'
    answers_status = prototype is None or STATUS.search(prototype[0])
    return f'ASHLAR_REFUSED({name}, {library.refused if answers_status else 0})'


def write(library, found, out):
    lines = [f'// Generated by hollow/names.py: do not edit. {len(found.names)} names.', '//']
    for label in sorted({label for label, _ in found.files}):
        lines += textwrap.wrap(f'{label}: ' + ', '.join(sorted(name for of, name in found.files if of == label)), 118,
                               initial_indent='// ', subsequent_indent='//   ')
    lines += ['//', f'// {library.refused} is {library.source}.']
    for rule, why in library.launched:
        lines.append(f'// Launched: {why}.')
    lines += [line_of(library, name, found) for name in sorted(found.names)]
    with open(os.path.join(out, library.name + '.inc'), 'w', encoding='utf-8') as file:
        file.write('\n'.join(lines) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', required=True)
    parser.add_argument('folders', nargs='+', metavar='LABEL=FOLDER')
    arguments = parser.parse_args()
    found = look([one.split('=', 1) for one in arguments.folders])
    for library in LIBRARIES:
        mine = found[library.name]
        if not mine.names:
            sys.exit(f'names.py: no header or library of {library.name} in the folders that were given')
        write(library, mine, arguments.out)
        print(f'{library.name}: {len(mine.names)} names')


if __name__ == '__main__':
    main()
