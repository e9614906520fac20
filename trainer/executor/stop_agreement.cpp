#include "trainer/executor/stop_agreement.h"

#include <algorithm>

#include "trainer/world/message.h"

namespace shardscope::trainer::executor {

StopAgreement::StopAgreement(world::World& world, StopGate& gate) : world_(world), gate_(gate) {
    using std::string_view;
    world_.on(kFreeze, lifeline_.guard([](StopAgreement& own, int, string_view) { own.freeze(); }));
    world_.on(kLast, lifeline_.guard([](StopAgreement& own, int, string_view text) {
        own.gate_.thaw(world::MessageReader(text).number<std::int64_t>());
    }));
    if (world_.rank() > 0) return;
    world_.on(kAsk, lifeline_.guard([](StopAgreement& own, int, string_view) { own.asked(); }));
    world_.on(kBegun, lifeline_.guard([](StopAgreement& own, int, string_view text) {
        own.begun(world::MessageReader(text).number<std::int64_t>());
    }));
}

void StopAgreement::asked() {
    if (asked_) return;
    asked_ = true;
    world_.tell_all(kFreeze, "");
    freeze();
}

void StopAgreement::freeze() {
    world_.tell(kBegun, world::MessageWriter().add(gate_.freeze()).text());
}

void StopAgreement::begun(std::int64_t step) {
    latest_ = std::max(latest_, step);
    if (++answers_ < world_.ranks()) return;
    world_.tell_all(kLast, world::MessageWriter().add(latest_).text());
    gate_.thaw(latest_);
}

}  // namespace shardscope::trainer::executor
