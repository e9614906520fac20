#include "trainer/model/activation_offload.h"

#include <algorithm>
#include <utility>

namespace shardscope::trainer::model {

namespace {

constexpr plan::Stream kToHost = plan::Stream::post_backward, kToDevice = plan::Stream::pre_unshard;

}  // namespace

void ActivationOffload::begin_layer(const Module& layer, const plan::Tensor& input) {
    if (!tape_.recording()) return;
    if (layers_.empty()) {
        made_.push_back(input.storage);
    } else {
        copy_out(layers_.back(), input);
    }
    layers_.push_back({.module = layer.id});
    builder_.watch(made_);
}

void ActivationOffload::end_layer() {
    if (!tape_.recording()) return;
    tape_.hook([this, index = layers_.size() - 1] { begin_backward(index); });
}

// What is still referenced is saved; `input`, which the next layer reads, is for that layer to copy.
void ActivationOffload::copy_out(Layer& layer, const plan::Tensor& input) {
    const plan::PlanBuilder::Scope scope(builder_, builder_.phase(), layer.module, builder_.unit());
    std::vector<std::weak_ptr<plan::Storage>> made = std::exchange(made_, {});
    for (std::weak_ptr<plan::Storage>& weak : made) {
        const std::shared_ptr<plan::Storage> storage = weak.lock();
        if (!storage) continue;
        if (storage == input.storage) {
            made_.push_back(std::move(weak));
            continue;
        }
        const plan::Buffer& buffer = builder_.buffers()[static_cast<std::size_t>(storage->buffer())];
        if (buffer.category != plan::MemoryCategory::activations || buffer.bytes < kSmallestOffload ||
            buffer.space != plan::MemorySpace::device)
            continue;
        layer.saved.push_back({std::move(weak), {}});
    }
    if (layer.saved.empty()) return;
    copies_ = true;
    const plan::PlanBuilder::Range range(builder_, "pack_to_cpu");
    builder_.order(plan::Stream::compute, kToHost);
    for (Saved& saved : layer.saved) {
        const std::shared_ptr<plan::Storage> storage = saved.storage.lock();
        plan::Buffer buffer = builder_.buffers()[static_cast<std::size_t>(storage->buffer())];
        buffer.name += " (host)";
        buffer.space = plan::MemorySpace::pinned;
        const plan::BufferId id = builder_.new_buffer(std::move(buffer));
        builder_.allocate(id, kToHost);
        saved.on_host = {std::make_shared<plan::Storage>(builder_, id), builder_.whole(id)};
        builder_.memcpy(saved.on_host, builder_.whole(storage->buffer()), traces::schema::kCopyDeviceToHost,
                        kToHost);
        storage->leave();
    }
    layer.copied = builder_.new_event();
    builder_.record(layer.copied, kToHost);
    if (layers_.size() > 1 && layers_[layers_.size() - 2].copied >= 0)
        builder_.host_wait(layers_[layers_.size() - 2].copied);
}

void ActivationOffload::fetch(Layer& layer) {
    if (layer.saved.empty() || layer.fetched >= 0) return;
    const plan::PlanBuilder::Scope scope(builder_, builder_.phase(), layer.module, builder_.unit());
    const plan::PlanBuilder::Range range(builder_, "unpack_from_cpu");
    builder_.wait(layer.copied, kToDevice);
    for (Saved& saved : layer.saved) {
        if (const std::shared_ptr<plan::Storage> storage = saved.storage.lock()) {
            storage->come_back(kToDevice);
            builder_.memcpy(builder_.whole(storage->buffer()), saved.on_host,
                            traces::schema::kCopyHostToDevice, kToDevice);
        }
        saved.on_host = {};
    }
    layer.fetched = builder_.new_event();
    builder_.record(layer.fetched, kToDevice);
}

void ActivationOffload::begin_backward(std::size_t index) {
    builder_.end_watch(made_);
    Layer& layer = layers_[index];
    fetch(layer);
    if (layer.fetched >= 0) builder_.wait(layer.fetched, plan::Stream::compute);
    layer.reached = builder_.new_event();
    builder_.record(layer.reached, plan::Stream::compute);
    if (index == 0 || layers_[index - 1].saved.empty()) return;
    if (index + 1 < layers_.size() && layers_[index + 1].reached >= 0)
        builder_.host_wait(layers_[index + 1].reached);
    fetch(layers_[index - 1]);
}

}  // namespace shardscope::trainer::model
