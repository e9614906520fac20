// cuBLASLt as the MatmulLibrary, opened at run time. The algorithm that its heuristics choose for a matmul
// is reused for all later ones of the same shape and alignment. Source: NVIDIA, cuBLAS documentation, "Using
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
#include "trainer/cuda/matmul_library.h"
#include "trainer/cuda/row_sums.h"

namespace shardscope::trainer::cuda {

namespace {

// --- the library -----------------------------------------------------------------------------------------

// The functions that are called, without their prefix cublasLt.
// clang-format off
#define SHARDSCOPE_CUBLASLT_FUNCTIONS(F)                                                                   \
    F(Create) F(Destroy) F(GetStatusString) F(Matmul) F(MatmulAlgoGetHeuristic)                            \
    F(MatmulDescCreate) F(MatmulDescDestroy) F(MatmulDescSetAttribute)                                     \
    F(MatrixLayoutCreate) F(MatrixLayoutDestroy)                                                           \
    F(MatmulPreferenceCreate) F(MatmulPreferenceDestroy) F(MatmulPreferenceSetAttribute)
// clang-format on

// NOLINTBEGIN(bugprone-macro-parentheses): a name takes none.
#define SHARDSCOPE_MEMBER(name) decltype(&cublasLt##name) name = nullptr;
#define SHARDSCOPE_FIND(name) find(functions.name, "cublasLt" #name);
// NOLINTEND(bugprone-macro-parentheses)

struct Functions {
    SHARDSCOPE_CUBLASLT_FUNCTIONS(SHARDSCOPE_MEMBER)

    void check(cublasStatus_t status, const std::string& what) const {
        if (status == CUBLAS_STATUS_SUCCESS) return;
        throw CudaError(fmt::format("{} failed: {}", what, GetStatusString(status)));
    }
};

// The first library that can be opened; `why` receives the reasons why the ones before it could not.
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

// Opens SHARDSCOPE_CUBLASLT, else the major version of this build's header, else the previous one, for good.
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
    SHARDSCOPE_CUBLASLT_FUNCTIONS(SHARDSCOPE_FIND)
    return functions;
}

const Functions& lt() {
    static const Functions functions = open_functions();  // if this throws, the next call tries again
    return functions;
}

// --- what is kept for a kind of matmul -------------------------------------------------------------------

struct Destroy {
    void operator()(cublasLtMatmulDesc_t desc) const { lt().MatmulDescDestroy(desc); }
    void operator()(cublasLtMatrixLayout_t layout) const { lt().MatrixLayoutDestroy(layout); }
    void operator()(cublasLtMatmulPreference_t preference) const { lt().MatmulPreferenceDestroy(preference); }
    void operator()(cublasLtHandle_t handle) const { lt().Destroy(handle); }
};
template <class Pointer>
using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy>;

Owned<cublasLtMatrixLayout_t> layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns,
                                     std::int64_t leading) {
    cublasLtMatrixLayout_t made = nullptr;
    lt().check(lt().MatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
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
using MatmulKind = std::array<std::int64_t, 16>;
MatmulKind kind_of(const MatmulCall& call) {
    const Matmul& p = call.matmul;
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
struct MatmulPlan {
    Owned<cublasLtMatmulDesc_t> desc;
    Owned<cublasLtMatrixLayout_t> a, b, c;
    cublasLtMatmulAlgo_t algorithm = {};
    std::size_t workspace_bytes = 0;
    bool adds_bias = false, activates = false;  // in the matmul itself
};

template <class Value>
void set_attribute(const MatmulPlan& plan, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    lt().check(lt().MatmulDescSetAttribute(plan.desc.get(), attribute, &value, sizeof value),
               "cublasLtMatmulDescSetAttribute");
}
// Sets a pointer that differs between matmuls of one kind.
void set_pointer(const MatmulPlan& plan, cublasLtMatmulDescAttributes_t attribute, const void* pointer) {
    set_attribute(plan, attribute, pointer);
}

// The epilogue that computes the activation and, if the sum is kept, stores that too.
cublasLtEpilogue_t activating_epilogue(const MatmulCall& call) {
    if (call.matmul.activation == kernels::ActivationKind::relu)
        return call.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    if (call.sum) return call.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    return call.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
}

// The activation's input is in `sum` if that is kept, else in C.
void launch_activation(const MatmulCall& call, cudaStream_t stream) {
    const auto n = static_cast<std::size_t>(call.matmul.m * call.matmul.n);
    with_type(call.dtype, [&]<class T>(T) {
        const auto* sum = reinterpret_cast<const T*>(call.sum ? call.sum : call.c);
        activation_forward(call.matmul.activation, sum, reinterpret_cast<T*>(call.c), n, {}, stream);
    });
}

}  // namespace

struct MatmulLibrary::State {
    Owned<cublasLtHandle_t> handle;
    bool tf32 = false;
    std::map<MatmulKind, MatmulPlan> plans;

    MatmulPlan make_plan(const MatmulCall& call) const;
    Owned<cublasLtMatmulDesc_t> new_desc(const MatmulCall& call) const;
    bool find_algorithm(MatmulPlan& plan, const MatmulCall& call) const;
    bool find_activating(MatmulPlan& plan, const MatmulCall& call) const;
};

Owned<cublasLtMatmulDesc_t> MatmulLibrary::State::new_desc(const MatmulCall& call) const {
    const bool rounds = tf32 && call.dtype == plan::DType::fp32;
    cublasLtMatmulDesc_t made = nullptr;
    lt().check(
        lt().MatmulDescCreate(&made, rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
    Owned<cublasLtMatmulDesc_t> desc(made);
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, bool transposes) {
        const cublasOperation_t operation = transposes ? CUBLAS_OP_T : CUBLAS_OP_N;
        lt().check(lt().MatmulDescSetAttribute(made, attribute, &operation, sizeof operation),
                   "cublasLtMatmulDescSetAttribute");
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, call.matmul.transpose_a);
    set(CUBLASLT_MATMUL_DESC_TRANSB, call.matmul.transpose_b);
    return desc;
}

// False if there is none: for example, if the bias is not aligned as the algorithms require.
bool MatmulLibrary::State::find_algorithm(MatmulPlan& plan, const MatmulCall& call) const {
    cublasLtMatmulPreference_t made = nullptr;
    lt().check(lt().MatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
    const Owned<cublasLtMatmulPreference_t> preference(made);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
        lt().check(lt().MatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
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
        lt().MatmulAlgoGetHeuristic(handle.get(), plan.desc.get(), plan.a.get(), plan.b.get(), plan.c.get(),
                                    plan.c.get(), preference.get(), 1, &result, &found);
    // Either status may mean that there is no kernel with this activation; the caller then looks for one
    // without it.
    const bool lacks =
        status == CUBLAS_STATUS_NOT_SUPPORTED || (plan.activates && status == CUBLAS_STATUS_INVALID_VALUE);
    if (!lacks) lt().check(status, "cublasLtMatmulAlgoGetHeuristic");
    if (status != CUBLAS_STATUS_SUCCESS || found == 0 || result.state != CUBLAS_STATUS_SUCCESS) return false;
    plan.algorithm = result.algo;
    plan.workspace_bytes = result.workspaceSize;
    return true;
}

// Finds an algorithm that computes the activation too. GELU's sums can be kept if their columns are
// multiples of 8 elements.
bool MatmulLibrary::State::find_activating(MatmulPlan& plan, const MatmulCall& call) const {
    constexpr std::int64_t kSumColumns = 8;
    if (call.matmul.activation == kernels::ActivationKind::none) return false;
    if (call.sum && call.matmul.ldc % kSumColumns != 0) return false;
    plan.desc = new_desc(call);
    set_attribute(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, activating_epilogue(call));
    if (call.bias) set_pointer(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias);
    if (call.sum) {
        set_attribute(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, call.matmul.ldc);
        set_pointer(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, call.sum);
    }
    plan.adds_bias = call.bias != nullptr;
    plan.activates = true;
    if (find_algorithm(plan, call)) return true;
    plan.adds_bias = plan.activates = false;
    return false;
}

MatmulPlan MatmulLibrary::State::make_plan(const MatmulCall& call) const {
    const Matmul& p = call.matmul;
    const cudaDataType_t type = call.dtype == plan::DType::bf16   ? CUDA_R_16BF
                                : call.dtype == plan::DType::fp16 ? CUDA_R_16F
                                                                  : CUDA_R_32F;
    MatmulPlan plan;
    plan.a = p.transpose_a ? layout(type, p.k, p.m, p.lda) : layout(type, p.m, p.k, p.lda);
    plan.b = p.transpose_b ? layout(type, p.n, p.k, p.ldb) : layout(type, p.k, p.n, p.ldb);
    plan.c = layout(type, p.m, p.n, p.ldc);
    if (find_activating(plan, call)) return plan;
    plan.desc = new_desc(call);
    if (call.bias) {
        set_attribute(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
        set_pointer(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias);
        plan.adds_bias = true;
    }
    if (find_algorithm(plan, call)) return plan;
    if (call.bias) {
        set_attribute(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
        plan.adds_bias = false;
        if (find_algorithm(plan, call)) return plan;
    }
    throw CudaError(fmt::format(
        "cuBLASLt has no algorithm for a product of [{}, {}] and [{}, {}] in {} with {} bytes of workspace; "
        "set "
        "memory.gemm_workspace_bytes higher",
        p.m, p.k, p.k, p.n, plan::kDTypeNames[static_cast<std::size_t>(call.dtype)], call.workspace_bytes));
}

MatmulLibrary::MatmulLibrary(bool tf32) : state_(std::make_unique<State>()) {
    cublasLtHandle_t handle = nullptr;
    lt().check(lt().Create(&handle), "starting cuBLASLt");
    state_->handle.reset(handle);
    state_->tf32 = tf32;
}
MatmulLibrary::~MatmulLibrary() = default;

void MatmulLibrary::multiply(const MatmulCall& call, cudaStream_t stream) {
    const MatmulKind kind = kind_of(call);
    auto found = state_->plans.find(kind);
    if (found == state_->plans.end()) found = state_->plans.emplace(kind, state_->make_plan(call)).first;
    const MatmulPlan& plan = found->second;

    const float one = 1.0f, zero = 0.0f;
    float keep = zero;
    const bool apart = call.matmul.activation != kernels::ActivationKind::none && !plan.activates;
    std::byte* c = apart && call.sum ? call.sum : call.c;
    if (plan.activates && call.sum) set_pointer(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, call.sum);
    if (call.bias && plan.adds_bias) {
        set_pointer(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias);
    } else if (call.bias) {  // the matmul is added to the bias; a column of C is a row of y
        with_type(call.dtype, [&]<class T>(T) {
            launch_repeat_row(reinterpret_cast<const T*>(call.bias), reinterpret_cast<T*>(c), call.matmul.n,
                              call.matmul.m, stream);
        });
        keep = one;
    }
    lt().check(lt().Matmul(state_->handle.get(), plan.desc.get(), &one, call.a, plan.a.get(), call.b,
                           plan.b.get(), &keep, c, plan.c.get(), c, plan.c.get(), &plan.algorithm,
                           call.workspace, plan.workspace_bytes, stream),
               "cublasLtMatmul");
    if (apart) launch_activation(call, stream);
}

}  // namespace shardscope::trainer::cuda
