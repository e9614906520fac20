// cuBLASLt as the ProductLibrary, opened at run time. The algorithm that its heuristics choose for a matmul
// is kept for all later ones of the same shape and alignment. Source: NVIDIA, cuBLAS documentation, "Using
// the cuBLASLt API". Only its header's types are used here; the header of one major version also serves
// libraries of the previous one, because the numbers of attributes do not change.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/core.h>

#include "trainer/cuda/activation.h"
#include "trainer/cuda/product_library.h"
#include "trainer/cuda/row_sums.h"

namespace shardscope::trainer::cuda {

namespace {

// --- the library -----------------------------------------------------------------------------------------

struct Functions {
    decltype(&cublasLtCreate) create = nullptr;
    decltype(&cublasLtDestroy) destroy = nullptr;
    decltype(&cublasLtGetStatusString) status_string = nullptr;
    decltype(&cublasLtMatmul) multiply = nullptr;
    decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
    decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
    decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
    decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
    decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
    decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
    decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
    decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
    decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;

    void check(cublasStatus_t status, const std::string& what) const {
        if (status == CUBLAS_STATUS_SUCCESS) return;
        throw CudaError(fmt::format("{} failed: {}", what, status_string(status)));
    }
};

// The first that can be opened; `why` receives the reason why each of the others could not.
void* open_one_of(const std::vector<std::string>& names, std::string& opened, std::string& why) {
    for (const std::string& name : names) {
        if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
            opened = name;
            return handle;
        }
        const char* reason = ::dlerror();
        why += (why.empty() ? "" : "; ") + std::string(reason ? reason : name.c_str());
    }
    return nullptr;
}

// SHARDSCOPE_CUBLASLT, else the major version of this build's header, else the previous one. It stays open.
Functions open_functions() {
    const char* wanted = std::getenv("SHARDSCOPE_CUBLASLT");
    std::vector<std::string> names;
    if (wanted && *wanted) {
        names = {wanted};
    } else {
        for (const int major : {CUBLAS_VER_MAJOR, CUBLAS_VER_MAJOR - 1}) {
            names.push_back(fmt::format("libcublasLt.so.{}", major));
        }
    }
    std::string name, why;
    void* handle = open_one_of(names, name, why);
    if (!handle) {
        throw CudaError(
            fmt::format("cuBLASLt, which multiplies matrices, cannot be opened ({}); install CUDA's cuBLAS, "
                        "or name the library "
                        "by LD_LIBRARY_PATH or SHARDSCOPE_CUBLASLT",
                        why));
    }
    Functions functions;
    const auto find = [&](auto& function, const char* symbol) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, symbol));
        if (!function) throw CudaError(fmt::format("{} has no {}; install cuBLAS 12 or later", name, symbol));
    };
    find(functions.create, "cublasLtCreate");
    find(functions.destroy, "cublasLtDestroy");
    find(functions.status_string, "cublasLtGetStatusString");
    find(functions.multiply, "cublasLtMatmul");
    find(functions.heuristic, "cublasLtMatmulAlgoGetHeuristic");
    find(functions.desc_create, "cublasLtMatmulDescCreate");
    find(functions.desc_destroy, "cublasLtMatmulDescDestroy");
    find(functions.desc_set, "cublasLtMatmulDescSetAttribute");
    find(functions.layout_create, "cublasLtMatrixLayoutCreate");
    find(functions.layout_destroy, "cublasLtMatrixLayoutDestroy");
    find(functions.preference_create, "cublasLtMatmulPreferenceCreate");
    find(functions.preference_destroy, "cublasLtMatmulPreferenceDestroy");
    find(functions.preference_set, "cublasLtMatmulPreferenceSetAttribute");
    return functions;
}

const Functions& lt() {
    static const Functions functions = open_functions();  // tried again if it threw
    return functions;
}

// --- what it keeps for a kind of matmul ------------------------------------------------------------------

struct Destroy {
    void operator()(cublasLtMatmulDesc_t desc) const { lt().desc_destroy(desc); }
    void operator()(cublasLtMatrixLayout_t layout) const { lt().layout_destroy(layout); }
    void operator()(cublasLtMatmulPreference_t preference) const { lt().preference_destroy(preference); }
    void operator()(cublasLtHandle_t handle) const { lt().destroy(handle); }
};
template <class Pointer>
using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy>;

Owned<cublasLtMatrixLayout_t> layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns,
                                     std::int64_t leading) {
    cublasLtMatrixLayout_t made = nullptr;
    lt().check(lt().layout_create(&made, type, static_cast<std::uint64_t>(rows),
                                  static_cast<std::uint64_t>(columns), leading),
               "cublasLtMatrixLayoutCreate");
    return Owned<cublasLtMatrixLayout_t>(made);
}

// The largest power of two up to 256 that divides the address; more does not matter.
std::uint32_t alignment(const void* address) {
    const auto bits = reinterpret_cast<std::uintptr_t>(address) | 256;
    return static_cast<std::uint32_t>(bits & (~bits + 1));
}

// The key of matmuls that one algorithm serves.
using ProductKind = std::array<std::int64_t, 16>;
ProductKind kind_of(const ProductCall& call) {
    const Product& p = call.product;
    return {p.m,
            p.n,
            p.k,
            p.transpose_a ? 1 : 0,
            p.transpose_b ? 1 : 0,
            p.lda,
            p.ldb,
            p.ldc,
            static_cast<std::int64_t>(call.dtype) * 2 + (call.bias ? 1 : 0),
            call.workspace_bytes,
            alignment(call.a),
            alignment(call.b),
            alignment(call.c),
            alignment(call.bias),
            static_cast<std::int64_t>(p.activation) * 2 + (call.sum ? 1 : 0),
            alignment(call.sum)};
}

// How matmuls of one kind are carried out.
struct Way {
    Owned<cublasLtMatmulDesc_t> desc;
    Owned<cublasLtMatrixLayout_t> a, b, c;
    cublasLtMatmulAlgo_t algorithm = {};
    std::size_t workspace_bytes = 0;
    bool adds_bias = false, activates = false;  // in the matmul itself
};

template <class Value>
void set_attribute(const Way& way, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    lt().check(lt().desc_set(way.desc.get(), attribute, &value, sizeof value),
               "cublasLtMatmulDescSetAttribute");
}
// Sets a pointer that differs between matmuls of one kind.
void set_pointer(const Way& way, cublasLtMatmulDescAttributes_t attribute, const void* pointer) {
    set_attribute(way, attribute, pointer);
}

// The epilogue of the activation, which also stores the sum where that is kept.
cublasLtEpilogue_t activating_epilogue(const ProductCall& call) {
    if (call.product.activation == Activation::relu)
        return call.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    if (call.sum) return call.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    return call.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
}

// The activation's input is in `sum` where that is kept, else in C.
void launch_activation(const ProductCall& call, cudaStream_t stream) {
    const auto n = static_cast<std::size_t>(call.product.m * call.product.n);
    const auto start = [&]<class T>(T*) {
        const auto* sum = reinterpret_cast<const T*>(call.sum ? call.sum : call.c);
        auto* c = reinterpret_cast<T*>(call.c);
        if (call.product.activation == Activation::relu) return launch_relu(sum, c, n, stream);
        launch_gelu(sum, c, n, stream);
    };
    if (call.dtype == DType::bf16) return start(static_cast<Bf16*>(nullptr));
    start(static_cast<float*>(nullptr));
}

}  // namespace

struct ProductLibrary::State {
    Owned<cublasLtHandle_t> handle;
    bool tf32 = false;
    std::map<ProductKind, Way> ways;

    Way make_way(const ProductCall& call) const;
    Owned<cublasLtMatmulDesc_t> new_desc(const ProductCall& call) const;
    bool find_algorithm(Way& way, const ProductCall& call) const;
    bool find_activating(Way& way, const ProductCall& call) const;
};

Owned<cublasLtMatmulDesc_t> ProductLibrary::State::new_desc(const ProductCall& call) const {
    const bool rounds = tf32 && call.dtype == DType::fp32;
    cublasLtMatmulDesc_t made = nullptr;
    lt().check(
        lt().desc_create(&made, rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
    Owned<cublasLtMatmulDesc_t> desc(made);
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, bool transposes) {
        const cublasOperation_t operation = transposes ? CUBLAS_OP_T : CUBLAS_OP_N;
        lt().check(lt().desc_set(made, attribute, &operation, sizeof operation),
                   "cublasLtMatmulDescSetAttribute");
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, call.product.transpose_a);
    set(CUBLASLT_MATMUL_DESC_TRANSB, call.product.transpose_b);
    return desc;
}

// Finds nothing where, for example, the bias is not aligned as the algorithms require.
bool ProductLibrary::State::find_algorithm(Way& way, const ProductCall& call) const {
    cublasLtMatmulPreference_t made = nullptr;
    lt().check(lt().preference_create(&made), "cublasLtMatmulPreferenceCreate");
    const Owned<cublasLtMatmulPreference_t> preference(made);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
        lt().check(lt().preference_set(preference.get(), attribute, &value, sizeof value),
                   "cublasLtMatmulPreferenceSetAttribute");
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(call.workspace_bytes));
    // Split sums are added in fp32 and rounded once.
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(call.a));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(call.b));
    const std::uint32_t written = std::min(alignment(call.c), alignment(call.sum));  // either is written
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, written);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::min(written, alignment(call.bias)));
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    const cublasStatus_t status =
        lt().heuristic(handle.get(), way.desc.get(), way.a.get(), way.b.get(), way.c.get(), way.c.get(),
                       preference.get(), 1, &result, &found);
    // Either status may mean that it has no kernel with this activation: the caller then asks for one
    // without.
    const bool lacks =
        status == CUBLAS_STATUS_NOT_SUPPORTED || (way.activates && status == CUBLAS_STATUS_INVALID_VALUE);
    if (!lacks) lt().check(status, "cublasLtMatmulAlgoGetHeuristic");
    if (status != CUBLAS_STATUS_SUCCESS || found == 0 || result.state != CUBLAS_STATUS_SUCCESS) return false;
    way.algorithm = result.algo;
    way.workspace_bytes = result.workspaceSize;
    return true;
}

// Finds an algorithm that computes the activation too. GELU's sums can be kept if their columns are
// multiples of 8 elements.
bool ProductLibrary::State::find_activating(Way& way, const ProductCall& call) const {
    constexpr std::int64_t kSumColumns = 8;
    if (call.product.activation == Activation::none) return false;
    if (call.sum && call.product.ldc % kSumColumns != 0) return false;
    way.desc = new_desc(call);
    set_attribute(way, CUBLASLT_MATMUL_DESC_EPILOGUE, activating_epilogue(call));
    if (call.bias) set_pointer(way, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias);
    if (call.sum) {
        set_attribute(way, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, call.product.ldc);
        set_pointer(way, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, call.sum);
    }
    way.adds_bias = call.bias != nullptr;
    way.activates = true;
    if (find_algorithm(way, call)) return true;
    way.adds_bias = way.activates = false;
    return false;
}

Way ProductLibrary::State::make_way(const ProductCall& call) const {
    const Product& p = call.product;
    const cudaDataType_t type = call.dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
    Way way;
    way.a = p.transpose_a ? layout(type, p.k, p.m, p.lda) : layout(type, p.m, p.k, p.lda);
    way.b = p.transpose_b ? layout(type, p.n, p.k, p.ldb) : layout(type, p.k, p.n, p.ldb);
    way.c = layout(type, p.m, p.n, p.ldc);
    if (find_activating(way, call)) return way;
    way.desc = new_desc(call);
    if (call.bias) {
        set_attribute(way, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
        set_pointer(way, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias);
        way.adds_bias = true;
    }
    if (find_algorithm(way, call)) return way;
    if (call.bias) {
        set_attribute(way, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
        way.adds_bias = false;
        if (find_algorithm(way, call)) return way;
    }
    throw CudaError(fmt::format(
        "cuBLASLt has no algorithm for a product of [{}, {}] and [{}, {}] in {} with {} bytes of workspace; "
        "set "
        "memory.gemm_workspace_bytes higher",
        p.m, p.k, p.k, p.n, kDTypeNames[static_cast<std::size_t>(call.dtype)], call.workspace_bytes));
}

ProductLibrary::ProductLibrary(bool tf32) : state_(std::make_unique<State>()) {
    cublasLtHandle_t handle = nullptr;
    lt().check(lt().create(&handle), "starting cuBLASLt");
    state_->handle.reset(handle);
    state_->tf32 = tf32;
}
ProductLibrary::~ProductLibrary() = default;

void ProductLibrary::multiply(const ProductCall& call, cudaStream_t stream) {
    const ProductKind kind = kind_of(call);
    auto found = state_->ways.find(kind);
    if (found == state_->ways.end()) found = state_->ways.emplace(kind, state_->make_way(call)).first;
    const Way& way = found->second;

    const float one = 1.0f, zero = 0.0f;
    float keep = zero;
    const bool apart = call.product.activation != Activation::none && !way.activates;
    std::byte* c = apart && call.sum ? call.sum : call.c;
    if (way.activates && call.sum) set_pointer(way, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, call.sum);
    if (call.bias && way.adds_bias) {
        set_pointer(way, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias);
    } else if (call.bias) {  // the matmul is added to the bias; a column of C is a row of y
        const auto start = [&]<class T>(T*) {
            launch_repeat_row(reinterpret_cast<const T*>(call.bias), reinterpret_cast<T*>(c), call.product.n,
                              call.product.m, stream);
        };
        if (call.dtype == DType::bf16) {
            start(static_cast<Bf16*>(nullptr));
        } else {
            start(static_cast<float*>(nullptr));
        }
        keep = one;
    }
    lt().check(lt().multiply(state_->handle.get(), way.desc.get(), &one, call.a, way.a.get(), call.b,
                             way.b.get(), &keep, c, way.c.get(), c, way.c.get(), &way.algorithm,
                             call.workspace, way.workspace_bytes, stream),
               "cublasLtMatmul");
    if (apart) launch_activation(call, stream);
}

}  // namespace shardscope::trainer::cuda
