// The NVTX end of the injected library: the functions that an instrumented program's NVTX calls are
// redirected to, and the entry point that puts them into its tables. Any thread of the program runs this.
#include <cstddef>
#include <cstdint>

#include "profiler/inject/nvtx_abi.h"
#include "profiler/inject/nvtx_events.h"
#include "profiler/inject/process_log.h"
#include "profiler/inject/text.h"

namespace shardscope::profiler::inject {
namespace {

using inject::describe;
using nvtx::EventAttributes;

// Handles of registered strings are their ids.
std::uint32_t as_name(nvtx::StringHandle handle) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle));
}

Event describe(const wchar_t* text, char (&buffer)[kMaxText]) {
    Event event;
    event.text = wide_text(text, buffer);
    return event;
}

bool is_known(const EventAttributes* attributes) {
    return attributes != nullptr && attributes->size >= sizeof(EventAttributes);
}

[[gnu::always_inline]] inline Event describe(const EventAttributes* attributes, char (&buffer)[kMaxText]) {
    Event event;
    if (!is_known(attributes)) return event;
    if (attributes->color_type == nvtx::kColorArgb) {
        event.flags |= kHasColor;
        event.color = attributes->color;
    }
    if (attributes->category != 0) {
        event.flags |= kHasCategory;
        event.category = attributes->category;
    }
    if (attributes->payload_type == nvtx::kPayloadTypeExtended) {
        if (attributes->reserved > 0) {
            event.payloads = {reinterpret_cast<const nvtx::PayloadData*>(attributes->payload),
                              static_cast<std::size_t>(attributes->reserved)};
        }
    } else if (attributes->payload_type > 0 && attributes->payload_type <= nvtx::kPayloadTypeLast) {
        event.value_type = static_cast<std::uint32_t>(attributes->payload_type);
        event.value = attributes->payload;
    }
    switch (attributes->message_type) {
        case nvtx::kMessageAscii:
            event.text = narrow_text(attributes->message.ascii);
            break;
        case nvtx::kMessageUnicode:
            event.text = wide_text(attributes->message.unicode, buffer);
            break;
        case nvtx::kMessageRegistered:
            event.name = as_name(attributes->message.registered);
            break;
        default:
            break;
    }
    return event;
}

// The general paths, kept out of line so that the hot functions stay small.
[[gnu::noinline]] int push_any(const Domain& domain, const EventAttributes* a) {
    char buffer[kMaxText];
    return push(domain, describe(a, buffer));
}
[[gnu::noinline]] int push_any(const Domain& domain, const char* text) {
    return push(domain, describe(text));
}
[[gnu::noinline]] int pop_any(const Domain& domain) {
    return pop(domain);
}

// Takes the fast path if the event has a registered or narrow message and nothing else.
[[gnu::always_inline]] inline int push_attributes(const Domain& domain, const EventAttributes* a) {
    ThreadState* const thread = ready_thread();
    if (thread == nullptr || !is_known(a) || a->payload_type != 0 || a->category != 0 || a->color_type != 0)
        return push_any(domain, a);
    Event event;
    if (a->message_type == nvtx::kMessageRegistered) {
        event.name = as_name(a->message.registered);
    } else if (a->message_type == nvtx::kMessageAscii) {
        event.text = narrow_text(a->message.ascii);
    } else {
        return push_any(domain, a);
    }
    const int depth = push_at_once(*thread, domain, event);
    return depth != kNotAtOnce ? depth : push_any(domain, a);
}
[[gnu::always_inline]] inline int pop_range(const Domain& domain) {
    const int depth = pop_at_once(domain);
    return depth != kNotAtOnce ? depth : pop_any(domain);
}

// --- the functions of the tables ---------------------------------------------------------------------------

void mark_ex(const EventAttributes* a) {
    char buffer[kMaxText];
    mark(*default_domain(), describe(a, buffer));
}
void mark_a(const char* text) {
    mark(*default_domain(), describe(text));
}
void mark_w(const wchar_t* text) {
    char buffer[kMaxText];
    mark(*default_domain(), describe(text, buffer));
}
nvtx::RangeId range_start_ex(const EventAttributes* a) {
    char buffer[kMaxText];
    return start(*default_domain(), describe(a, buffer));
}
nvtx::RangeId range_start_a(const char* text) {
    return start(*default_domain(), describe(text));
}
nvtx::RangeId range_start_w(const wchar_t* text) {
    char buffer[kMaxText];
    return start(*default_domain(), describe(text, buffer));
}
void range_end(nvtx::RangeId id) {
    end(*default_domain(), id);
}
int range_push_ex(const EventAttributes* a) {
    return push_attributes(*default_domain(), a);
}
int range_push_a(const char* text) {
    ThreadState* const thread = ready_thread();
    if (thread == nullptr) return push_any(*default_domain(), text);
    const int depth = push_at_once(*thread, *default_domain(), describe(text));
    return depth != kNotAtOnce ? depth : push_any(*default_domain(), text);
}
int range_push_w(const wchar_t* text) {
    char buffer[kMaxText];
    return push(*default_domain(), describe(text, buffer));
}
int range_pop() {
    return pop_range(*default_domain());
}

void name_category_a(std::uint32_t category, const char* name) {
    write_text(RecordKind::category_name, category, 0, narrow_text(name));
}
void name_category_w(std::uint32_t category, const wchar_t* name) {
    char buffer[kMaxText];
    write_text(RecordKind::category_name, category, 0, wide_text(name, buffer));
}
void name_os_thread_a(std::uint32_t tid, const char* name) {
    write_text(RecordKind::thread_name, 0, tid, narrow_text(name));
}
void name_os_thread_w(std::uint32_t tid, const wchar_t* name) {
    char buffer[kMaxText];
    write_text(RecordKind::thread_name, 0, tid, wide_text(name, buffer));
}

void domain_mark_ex(nvtx::DomainHandle domain, const EventAttributes* a) {
    char buffer[kMaxText];
    mark(as_domain(domain), describe(a, buffer));
}
nvtx::RangeId domain_range_start_ex(nvtx::DomainHandle domain, const EventAttributes* a) {
    char buffer[kMaxText];
    return start(as_domain(domain), describe(a, buffer));
}
void domain_range_end(nvtx::DomainHandle domain, nvtx::RangeId id) {
    end(as_domain(domain), id);
}
int domain_range_push_ex(nvtx::DomainHandle domain, const EventAttributes* a) {
    return push_attributes(as_domain(domain), a);
}
int domain_range_pop(nvtx::DomainHandle domain) {
    return pop_range(as_domain(domain));
}
void domain_name_category_a(nvtx::DomainHandle domain, std::uint32_t category, const char* name) {
    write_text(RecordKind::category_name, category, as_domain(domain).name, narrow_text(name));
}
void domain_name_category_w(nvtx::DomainHandle domain, std::uint32_t category, const wchar_t* name) {
    char buffer[kMaxText];
    write_text(RecordKind::category_name, category, as_domain(domain).name, wide_text(name, buffer));
}
nvtx::StringHandle domain_register_string_a(nvtx::DomainHandle, const char* text) {
    return reinterpret_cast<nvtx::StringHandle>(std::uintptr_t{name_id(narrow_text(text))});
}
nvtx::StringHandle domain_register_string_w(nvtx::DomainHandle, const wchar_t* text) {
    char buffer[kMaxText];
    return reinterpret_cast<nvtx::StringHandle>(std::uintptr_t{name_id(wide_text(text, buffer))});
}
nvtx::DomainHandle domain_create_a(const char* name) {
    return const_cast<Domain*>(domain(narrow_text(name)));
}
nvtx::DomainHandle domain_create_w(const wchar_t* name) {
    char buffer[kMaxText];
    return const_cast<Domain*>(domain(wide_text(name, buffer)));
}

// A domain's handle stays valid, since other modules may share it.
void domain_destroy(nvtx::DomainHandle) {}
// Resources (such as named mutexes) are not recorded; the program gets a handle without a meaning.
nvtx::ResourceHandle domain_resource_create(nvtx::DomainHandle, const void*) {
    static constexpr char kAnyResource = 0;
    return const_cast<char*>(&kAnyResource);
}
void domain_resource_destroy(nvtx::ResourceHandle) {}
void initialize(const void*) {}

// --- filling the tables ------------------------------------------------------------------------------------

class Table {
  public:
    Table(const nvtx::ExportCallbacks& callbacks, int module) {
        if (callbacks.get_module_function_table(module, &slots_, &size_) == 0) size_ = 0;
    }
    template <typename F>
    void set(unsigned index, F* function) {
        if (index < size_ && slots_[index] != nullptr) {
            *slots_[index] = reinterpret_cast<nvtx::Function>(function);
        }
    }

  private:
    nvtx::Function** slots_ = nullptr;  // slots of the program's function pointers
    unsigned size_ = 0;
};

void fill_core(Table table) {
    table.set(nvtx::mark_ex, mark_ex);
    table.set(nvtx::mark_a, mark_a);
    table.set(nvtx::mark_w, mark_w);
    table.set(nvtx::range_start_ex, range_start_ex);
    table.set(nvtx::range_start_a, range_start_a);
    table.set(nvtx::range_start_w, range_start_w);
    table.set(nvtx::range_end, range_end);
    table.set(nvtx::range_push_ex, range_push_ex);
    table.set(nvtx::range_push_a, range_push_a);
    table.set(nvtx::range_push_w, range_push_w);
    table.set(nvtx::range_pop, range_pop);
    table.set(nvtx::name_category_a, name_category_a);
    table.set(nvtx::name_category_w, name_category_w);
    table.set(nvtx::name_os_thread_a, name_os_thread_a);
    table.set(nvtx::name_os_thread_w, name_os_thread_w);
}

void fill_core2(Table table) {
    table.set(nvtx::domain_mark_ex, domain_mark_ex);
    table.set(nvtx::domain_range_start_ex, domain_range_start_ex);
    table.set(nvtx::domain_range_end, domain_range_end);
    table.set(nvtx::domain_range_push_ex, domain_range_push_ex);
    table.set(nvtx::domain_range_pop, domain_range_pop);
    table.set(nvtx::domain_name_category_a, domain_name_category_a);
    table.set(nvtx::domain_name_category_w, domain_name_category_w);
    table.set(nvtx::domain_register_string_a, domain_register_string_a);
    table.set(nvtx::domain_register_string_w, domain_register_string_w);
    table.set(nvtx::domain_create_a, domain_create_a);
    table.set(nvtx::domain_create_w, domain_create_w);
    table.set(nvtx::domain_destroy, domain_destroy);
    table.set(nvtx::domain_resource_create, domain_resource_create);
    table.set(nvtx::domain_resource_destroy, domain_resource_destroy);
    table.set(nvtx::initialize, initialize);
}

}  // namespace
}  // namespace shardscope::profiler::inject

// Called by each module of the program (the executable, each library with NVTX in it) at its first NVTX call.
// Always 1: with 0 the module would unload this library, which others may be using.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    shardscope::profiler::nvtx::GetExportTable get_export_table) {
    using namespace shardscope::profiler;
    if (get_export_table == nullptr || !inject::wants_nvtx()) return 1;
    const auto* callbacks =
        static_cast<const nvtx::ExportCallbacks*>(get_export_table(nvtx::kExportCallbacks));
    if (callbacks == nullptr || callbacks->struct_size < sizeof(nvtx::ExportCallbacks)) return 1;
    inject::fill_core(inject::Table(*callbacks, nvtx::kModuleCore));
    inject::fill_core2(inject::Table(*callbacks, nvtx::kModuleCore2));
    return 1;
}
