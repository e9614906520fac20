// A library with cuBLASLt's functions that multiplies on the CPU: it uses exactly what the trainer passes to
// cuBLASLt (layouts, transposes, epilogue, preferences, algorithm), and refuses contradictions as cuBLASLt
// does. test_cuda_cublaslt opens it through SHARDSCOPE_CUBLASLT.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <cublasLt.h>

#include "trainer/kernels/elements.h"

namespace {

using shardscope::trainer::kernels::Bf16;
using shardscope::trainer::kernels::Fp16;

struct Desc {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void* bias = nullptr;
    void* aux = nullptr;
    std::int64_t aux_leading = 0;

    // An epilogue's number is the sum of the flags of what it does.
    bool does(cublasLtEpilogue_t what) const { return (epilogue & what) != 0; }
    bool activates() const { return does(CUBLASLT_EPILOGUE_RELU) || does(CUBLASLT_EPILOGUE_GELU); }
    bool keeps_sum() const {
        return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    }
};
struct Layout {
    cudaDataType_t type;
    std::uint64_t rows, columns;
    std::int64_t leading;
};
struct Preference {
    std::uint64_t workspace = 0;
    std::uint32_t reduction = 0xffffffffu;
    std::uint32_t alignment_a = 256, alignment_b = 256, alignment_c = 256, alignment_d = 256;
};

int heuristics = 0;
int tf32_products = 0;
int activating_products = 0;

template <class T>
cublasStatus_t take(T& field, const void* value, std::size_t bytes) {
    if (bytes != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

// Whether the shapes match, and matrices are at most as high as their leading dimension.
bool fits(const Desc& desc, const Layout& a, const Layout& b, const Layout& c) {
    const bool ta = desc.transpose_a == CUBLAS_OP_T, tb = desc.transpose_b == CUBLAS_OP_T;
    const std::uint64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns;
    const std::uint64_t k_of_b = tb ? b.columns : b.rows, n = tb ? b.rows : b.columns;
    for (const Layout* layout : {&a, &b, &c}) {
        if (layout->leading < static_cast<std::int64_t>(layout->rows) || layout->type != c.type) return false;
    }
    return m == c.rows && n == c.columns && k == k_of_b;
}

// Whether there is memory for GELU's sums, in columns of multiples of 8 elements.
bool has_aux(const Desc& desc, const Layout& c) {
    if (!desc.keeps_sum()) return desc.aux == nullptr && desc.aux_leading == 0;
    return desc.aux != nullptr && desc.aux_leading % 8 == 0 &&
           desc.aux_leading >= static_cast<std::int64_t>(c.rows);
}

float number(const void* matrix, cudaDataType_t type, std::int64_t at) {
    if (type == CUDA_R_32F) return static_cast<const float*>(matrix)[at];
    if (type == CUDA_R_16F)
        return shardscope::trainer::kernels::to_float(static_cast<const Fp16*>(matrix)[at]);
    return shardscope::trainer::kernels::to_float(static_cast<const Bf16*>(matrix)[at]);
}

void store(void* matrix, cudaDataType_t type, std::int64_t at, float value) {
    if (type == CUDA_R_32F) {
        static_cast<float*>(matrix)[at] = value;
    } else if (type == CUDA_R_16F) {
        static_cast<Fp16*>(matrix)[at] = shardscope::trainer::kernels::to_fp16(value);
    } else {
        static_cast<Bf16*>(matrix)[at] = shardscope::trainer::kernels::to_bf16(value);
    }
}

// The activation of the sum before it is rounded; GELU is the tanh form.
float activated(const Desc& desc, float sum) {
    if (desc.does(CUBLASLT_EPILOGUE_RELU)) return std::max(sum, 0.0f);
    if (!desc.does(CUBLASLT_EPILOGUE_GELU)) return sum;
    const double x = sum;
    return static_cast<float>(0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))));
}

}  // namespace

extern "C" {

int played_heuristics() {
    return heuristics;
}
int played_tf32_products() {
    return tf32_products;
}
int played_activating_products() {
    return activating_products;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    *handle = reinterpret_cast<cublasLtHandle_t>(new int(1));
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    delete reinterpret_cast<int*>(handle);
    return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_INVALID_VALUE ? "played: an invalid value" : "played: an error";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    *desc = reinterpret_cast<cublasLtMatmulDesc_t>(new Desc{compute, scale});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
    delete reinterpret_cast<Desc*>(desc);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              size_t bytes) {
    Desc& d = *reinterpret_cast<Desc*>(desc);
    switch (attribute) {
        case CUBLASLT_MATMUL_DESC_TRANSA:
            return take(d.transpose_a, value, bytes);
        case CUBLASLT_MATMUL_DESC_TRANSB:
            return take(d.transpose_b, value, bytes);
        case CUBLASLT_MATMUL_DESC_EPILOGUE:
            return take(d.epilogue, value, bytes);
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
            return take(d.bias, value, bytes);
        case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
            return take(d.aux, value, bytes);
        case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
            return take(d.aux_leading, value, bytes);
        default:
            return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
    *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, leading});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    delete reinterpret_cast<Layout*>(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete reinterpret_cast<Preference*>(preference);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
    Preference& p = *reinterpret_cast<Preference*>(preference);
    switch (attribute) {
        case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
            return take(p.workspace, value, bytes);
        case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
            return take(p.reduction, value, bytes);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
            return take(p.alignment_a, value, bytes);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
            return take(p.alignment_b, value, bytes);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
            return take(p.alignment_c, value, bytes);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
            return take(p.alignment_d, value, bytes);
        default:
            return CUBLAS_STATUS_INVALID_VALUE;
    }
}

// Like cuBLASLt's, the algorithms add a bias, and compute an activation, only if D and the bias are aligned
// to 16 bytes, and need 64 bytes of workspace for each column if there are that many.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
    ++heuristics;
    const Desc& what = *reinterpret_cast<Desc*>(desc);
    const Preference& how = *reinterpret_cast<Preference*>(preference);
    const Layout& to = *reinterpret_cast<Layout*>(c);
    *found = 0;
    if (wanted < 1 || c != d ||
        !fits(what, *reinterpret_cast<Layout*>(a), *reinterpret_cast<Layout*>(b), to) || !has_aux(what, to)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (how.reduction != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) return CUBLAS_STATUS_INVALID_VALUE;
    const bool more = what.does(CUBLASLT_EPILOGUE_BIAS) || what.activates();
    if (more && how.alignment_d < 16) return CUBLAS_STATUS_NOT_SUPPORTED;
    results[0] = {};
    results[0].state = CUBLAS_STATUS_SUCCESS;
    results[0].algo.data[0] = 42;
    results[0].workspaceSize = std::min<std::uint64_t>(how.workspace, 64 * to.columns);
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm,
                              void* workspace, size_t workspace_bytes, cudaStream_t) {
    const Desc& what = *reinterpret_cast<Desc*>(desc);
    const Layout &la = *reinterpret_cast<Layout*>(a_layout), &lb = *reinterpret_cast<Layout*>(b_layout);
    const Layout& lc = *reinterpret_cast<Layout*>(c_layout);
    const bool contradicts =
        c != d || c_layout != d_layout || !fits(what, la, lb, lc) || algorithm->data[0] != 42 ||
        what.scale != CUDA_R_32F || *static_cast<const float*>(alpha) != 1.0f ||
        (what.does(CUBLASLT_EPILOGUE_BIAS) && what.bias == nullptr) || !has_aux(what, lc) ||
        (what.activates() && *static_cast<const float*>(beta) != 0.0f) ||
        (workspace == nullptr && workspace_bytes > 0);
    if (contradicts) return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace_bytes > 0) std::memset(workspace, 0xff, workspace_bytes);
    if (what.compute == CUBLAS_COMPUTE_32F_FAST_TF32) ++tf32_products;
    if (what.activates()) ++activating_products;
    const bool ta = what.transpose_a == CUBLAS_OP_T, tb = what.transpose_b == CUBLAS_OP_T;
    const auto depth = static_cast<std::int64_t>(ta ? la.rows : la.columns);
    for (std::int64_t column = 0; column < static_cast<std::int64_t>(lc.columns); ++column) {
        for (std::int64_t row = 0; row < static_cast<std::int64_t>(lc.rows); ++row) {
            const std::int64_t at = row + column * lc.leading;
            double sum = 0.0;
            if (*static_cast<const float*>(beta) != 0.0f)
                sum += *static_cast<const float*>(beta) * number(c, lc.type, at);
            if (what.does(CUBLASLT_EPILOGUE_BIAS)) sum += number(what.bias, lc.type, row);
            for (std::int64_t k = 0; k < depth; ++k) {
                sum += static_cast<double>(
                           number(a, la.type, ta ? k + row * la.leading : row + k * la.leading)) *
                       number(b, lb.type, tb ? column + k * lb.leading : k + column * lb.leading);
            }
            const auto rounded = static_cast<float>(sum);
            if (what.keeps_sum()) store(what.aux, lc.type, row + column * what.aux_leading, rounded);
            store(d, lc.type, at, activated(what, rounded));
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
