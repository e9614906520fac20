// oneDNN's C interface, version 2, and what its calls share. The functions are looked up by name, so that the
// program also starts on machines without the library. Internal to onednn.cpp and onednn_convolution.cpp;
// without the library's header there is nothing to call.
#pragma once

#ifdef SHARDSCOPE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

#if defined(SHARDSCOPE_ONEDNN) && DNNL_VERSION_MAJOR == 2
#define SHARDSCOPE_ONEDNN_2

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <vector>

#include "trainer/kernels/onednn.h"

namespace shardscope::trainer::kernels {

// The functions that are called, without their prefix dnnl_.
// clang-format off
#define SHARDSCOPE_ONEDNN_FUNCTIONS(F)                                                                     \
    F(version) F(get_effective_cpu_isa) F(set_max_cpu_isa)                                                 \
    F(engine_create) F(engine_destroy) F(stream_create) F(stream_destroy)                                  \
    F(memory_desc_init_by_strides) F(memory_desc_init_by_tag) F(memory_desc_get_size) F(memory_desc_equal) \
    F(memory_create) F(memory_destroy) F(memory_set_data_handle)                                           \
    F(primitive_attr_create) F(primitive_attr_destroy) F(primitive_attr_set_scratchpad_mode)               \
    F(primitive_attr_set_fpmath_mode)                                                                      \
    F(matmul_desc_init) F(convolution_forward_desc_init) F(convolution_backward_data_desc_init)            \
    F(convolution_backward_weights_desc_init) F(reorder_primitive_desc_create)                             \
    F(primitive_desc_create) F(primitive_desc_destroy) F(primitive_desc_query) F(primitive_desc_query_md)  \
    F(primitive_create) F(primitive_destroy) F(primitive_execute)
// clang-format on

// NOLINTBEGIN(bugprone-macro-parentheses): a name takes none.
#define SHARDSCOPE_MEMBER(name) decltype(&dnnl_##name) name;
// NOLINTEND(bugprone-macro-parentheses)

// All functions are null unless every one was found.
struct OneDnn::Library {
    SHARDSCOPE_ONEDNN_FUNCTIONS(SHARDSCOPE_MEMBER)
    void (*set_omp_threads)(int);
    dnnl_engine_t engine = nullptr;

    // Runs at the end of the process, after the streams and primitives of its threads are destroyed.
    ~Library() {
        if (engine) engine_destroy(engine);
    }
};

namespace onednn {

// Throws std::runtime_error with the status unless it is success.
void check(dnnl_status_t status, const char* what);

template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, dnnl_status_t (*)(Handle)>;

// Calls create(&handle, …) and owns what it makes.
template <class Handle, class Create, class... Arguments>
Owned<Handle> make(const char* what, dnnl_status_t (*destroy)(Handle), Create create,
                   Arguments... arguments) {
    Handle handle = nullptr;
    check(create(&handle, arguments...), what);
    return {handle, destroy};
}

// What a thread needs to run primitives. With one OpenMP thread the library runs its loops in this thread and
// starts no other.
struct OfThread {
    // The calling thread's, made on first use.
    static const OfThread& get(const OneDnn::Library& library);

    const OneDnn::Library& library;
    Owned<dnnl_stream_t> stream;
    // The scratch memory of primitives is our own, one block per calling thread: threads cannot share the
    // library's.
    Owned<dnnl_primitive_attr_t> attributes;
};

// The plan of an operation; null if the library has none for it.
Owned<dnnl_primitive_desc_t> planned(const OfThread& thread, const_dnnl_op_desc_t operation,
                                     const_dnnl_primitive_desc_t hint = nullptr);

// A compiled operation with the memories that it reads and writes. It belongs to one thread (the machine code
// itself is shared, in the library's own cache).
class Primitive {
  public:
    struct Operand {
        int argument;  // DNNL_ARG_…
        const dnnl_memory_desc_t* memory;
    };
    Primitive(const OfThread& thread, const_dnnl_primitive_desc_t plan,
              std::initializer_list<Operand> operands);
    // `data`: the addresses of the operands, in their order; those past its end are left out.
    void run(std::initializer_list<const void*> data) const;

  private:
    static constexpr std::size_t kMost = 4;  // operands, besides the scratch memory
    const OfThread& thread_;
    std::vector<int> arguments_;
    std::vector<Owned<dnnl_memory_t>> memories_;  // the scratch memory's last
    Owned<dnnl_primitive_t> primitive_;
    std::size_t scratch_bytes_;
};

}  // namespace onednn
}  // namespace shardscope::trainer::kernels

#else

#include "trainer/kernels/onednn.h"

namespace shardscope::trainer::kernels {
struct OneDnn::Library {};
}  // namespace shardscope::trainer::kernels

#endif
