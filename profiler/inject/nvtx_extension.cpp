// The NVTX payload extension's end of the injected library: its slots, and the entry point that fills them.
// Any thread of the program runs this.
#include <cstddef>
#include <cstdint>

#include "profiler/inject/nvtx_events.h"
#include "profiler/inject/nvtx_payload.h"
#include "profiler/inject/nvtx_payload_abi.h"
#include "profiler/inject/process_log.h"

namespace shardscope::profiler::inject {
namespace {

using nvtx::DomainHandle;
using nvtx::PayloadData;

Payloads as_payloads(const PayloadData* data, std::size_t count) {
    return data == nullptr ? Payloads() : Payloads{data, count};
}

std::uint64_t schema_register(DomainHandle domain, const nvtx::SchemaAttributes* attributes) {
    return register_schema(as_domain(domain), attributes);
}
std::uint64_t enum_register(DomainHandle domain, const nvtx::EnumAttributes* attributes) {
    return register_enum(as_domain(domain), attributes);
}
std::uint64_t scope_register(DomainHandle domain, const nvtx::ScopeAttributes* attributes) {
    return register_scope(as_domain(domain), attributes);
}
void mark_payload(DomainHandle domain, const PayloadData* data, std::size_t count) {
    mark(as_domain(domain), describe(as_domain(domain), as_payloads(data, count)));
}
int push_payload(DomainHandle domain, const PayloadData* data, std::size_t count) {
    return push(as_domain(domain), describe(as_domain(domain), as_payloads(data, count)));
}
int pop_payload(DomainHandle domain, const PayloadData* data, std::size_t count) {
    return pop(as_domain(domain), as_payloads(data, count));
}
nvtx::RangeId start_payload(DomainHandle domain, const PayloadData* data, std::size_t count) {
    return start(as_domain(domain), describe(as_domain(domain), as_payloads(data, count)));
}
void end_payload(DomainHandle domain, nvtx::RangeId id, const PayloadData* data, std::size_t count) {
    end(as_domain(domain), id, as_payloads(data, count));
}
std::uint8_t is_enabled(DomainHandle) {
    return 1;
}
// A time stamp, in our ticks, for events that the program times itself.
std::int64_t timestamp_get() {
    const SessionHeader* joined = session();
    return joined == nullptr ? 0 : static_cast<std::int64_t>(read_ticks(joined->clock).count);
}
// Time domains are for events that are submitted later, which are not recorded; the program gets its own id
// back, or one that is never used again.
std::uint64_t time_domain_register(DomainHandle, const nvtx::TimeDomainAttributes* attributes) {
    return attributes != nullptr && attributes->id != 0 ? attributes->id : nvtx::kDynamicIds;
}

class Slots {
  public:
    explicit Slots(const nvtx::ExtensionSegment& segment) : segment_(segment) {}
    template <typename F>
    void set(unsigned index, F* function) {
        if (index < segment_.slot_count) segment_.slots[index] = reinterpret_cast<std::intptr_t>(function);
    }

  private:
    const nvtx::ExtensionSegment& segment_;
};

void fill(Slots slots) {
    slots.set(nvtx::payload_schema_register, schema_register);
    slots.set(nvtx::payload_enum_register, enum_register);
    slots.set(nvtx::scope_register, scope_register);
    slots.set(nvtx::mark_payload, mark_payload);
    slots.set(nvtx::range_push_payload, push_payload);
    slots.set(nvtx::range_pop_payload, pop_payload);
    slots.set(nvtx::range_start_payload, start_payload);
    slots.set(nvtx::range_end_payload, end_payload);
    slots.set(nvtx::domain_is_enabled, is_enabled);
    slots.set(nvtx::timestamp_get, timestamp_get);
    slots.set(nvtx::time_domain_register, time_domain_register);
}

}  // namespace
}  // namespace shardscope::profiler::inject

// Called by each module of the program at its first call of an extension. Always 1, as
// InitializeInjectionNvtx2; slots that stay empty do nothing.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    shardscope::profiler::nvtx::ExtensionModule* module) {
    using namespace shardscope::profiler;
    if (module == nullptr || module->struct_size < sizeof(nvtx::ExtensionModule)) return 1;
    if (module->module != nvtx::kPayloadModule || module->segment_count == 0 || module->segments == nullptr ||
        module->segments->slots == nullptr || !inject::wants_nvtx()) {
        return 1;
    }
    inject::fill(inject::Slots(*module->segments));
    return 1;
}
