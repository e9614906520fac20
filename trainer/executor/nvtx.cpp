// Implemented with the headers of NVTX 3, which load the tool at the first call; without a tool their calls
// go through null pointers.
#include "trainer/executor/nvtx.h"

#include <fmt/core.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <unistd.h>

#include "trainer/sharding/program.h"

namespace shardscope::trainer::executor {
namespace {

nvtxEventAttributes_t attributes() {
    nvtxEventAttributes_t event = {};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    return event;
}

nvtxEventAttributes_t named(Nvtx::Name name) {
    nvtxEventAttributes_t event = attributes();
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = static_cast<nvtxStringHandle_t>(name);
    return event;
}

nvtxDomainHandle_t domain(void* handle) {
    return static_cast<nvtxDomainHandle_t>(handle);
}

Nvtx::Name add_name(void* of_domain, const std::string& text) {
    return nvtxDomainRegisterStringA(domain(of_domain), text.c_str());
}

}  // namespace

std::unique_ptr<Nvtx> Nvtx::open(const sharding::Program& program,
                                 const std::vector<const plan::Plan*>& more) {
    void* nccl = nvtxDomainCreateA("NCCL");  // null: no tool listens
    return std::unique_ptr<Nvtx>(nccl ? new Nvtx(program, more, nccl) : nullptr);
}

Nvtx::Nvtx(const sharding::Program& program, const std::vector<const plan::Plan*>& more, void* nccl_domain)
    : nccl_(nccl_domain) {
    for (std::size_t i = 0; i < traces::schema::kOperations; ++i) {
        collectives_[i] = add_name(nccl_, fmt::format("nccl{}", traces::schema::kOperationNcclNames[i]));
    }
    describe_payloads();
    for (int role = 0; role < program.roles(); ++role)
        for (const plan::Plan* plan : program.role(role).plans()) add(*plan);
    for (const plan::Plan* plan : more) add(*plan);
}

void Nvtx::add(const plan::Plan& plan) {
    std::vector<Name>& names = plans_[&plan];
    for (const std::string& name : plan.names) names.push_back(add_name(nullptr, name));
}

void Nvtx::describe_payloads() const {
    for (const traces::schema::PayloadSchemaRow& row : nccl_payload_schemas()) {
        std::vector<nvtxPayloadSchemaEntry_t> entries;
        for (const traces::schema::PayloadSchemaRow::Entry& from : row.entries) {
            nvtxPayloadSchemaEntry_t& entry = entries.emplace_back();
            entry.type = from.type;
            entry.name = from.name.c_str();
            entry.offset = from.offset;
        }
        nvtxPayloadSchemaAttr_t schema = {};
        schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                           NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                           NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                           NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
        schema.type = row.type;
        schema.entries = entries.data();
        schema.numEntries = entries.size();
        schema.payloadStaticSize = row.size;
        schema.schemaId = row.id;
        nvtxPayloadSchemaRegister(domain(nccl_), &schema);
    }
    const traces::schema::PayloadEnumRow reductions = nccl_reductions();
    std::vector<nvtxPayloadEnum_t> values;
    for (const traces::schema::PayloadEnumRow::Entry& from : reductions.entries) {
        nvtxPayloadEnum_t& value = values.emplace_back();
        value.name = from.name.c_str();
        value.value = from.value;
        value.isFlag = 0;
    }
    nvtxPayloadEnumAttr_t enumeration = {};
    enumeration.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                            NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
    enumeration.entries = values.data();
    enumeration.numEntries = values.size();
    enumeration.sizeOfEnum = reductions.size;
    enumeration.schemaId = reductions.id;
    nvtxPayloadEnumRegister(domain(nccl_), &enumeration);
}

void Nvtx::push(Name name) const {
    const nvtxEventAttributes_t event = named(name);
    nvtxRangePushEx(&event);
}

void Nvtx::push(const std::string& text) const {
    nvtxRangePushA(text.c_str());
}

void Nvtx::pop() const {
    nvtxRangePop();
}

void Nvtx::mark(const std::string& text) const {
    nvtxMarkA(text.c_str());
}

void Nvtx::push_collective(traces::schema::Operation operation, const NcclPayload& payload) const {
    nvtxEventAttributes_t event = named(collectives_[static_cast<std::size_t>(operation)]);
    const nvtxPayloadData_t data = {payload.schema, payload.size, &payload.value};
    if (payload.schema != 0) {
        event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
        event.reserved0 = 1;  // number of payloads
        event.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(&data);
    }
    nvtxDomainRangePushEx(domain(nccl_), &event);
}

void Nvtx::pop_collective() const {
    nvtxDomainRangePop(domain(nccl_));
}

void Nvtx::name_thread(const std::string& name) const {
    nvtxNameOsThreadA(static_cast<std::uint32_t>(gettid()), name.c_str());
}

}  // namespace shardscope::trainer::executor
