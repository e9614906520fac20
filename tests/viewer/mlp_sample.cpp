// See mlp_sample.h. The ranks are written one after the other: RankWriter keeps a rank's host clock and its
// streams' clocks.
#include "tests/viewer/mlp_sample.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "traces/store/columns/column_sink.h"

namespace shardscope::viewer {
namespace {

using namespace traces::schema;

enum Stream { kCompute = 7, kUnshard = 8, kReduce = 9 };

// The modules and units of the sample with their ids, the same for every rank.
struct Model {
    struct Layer {
        int wrapper = -1, linear = -1, relu = -1, unit = 0;
    };
    int root = 0, mlp = 1, sequential = 2;
    std::vector<Layer> layers;
    std::vector<ModuleRow> rows;
    std::vector<UnitRow> units;
};

Model make_model(const MlpSample& s) {
    Model model;
    int next = 0;
    const auto add = [&](int parent, std::string kind, int number, std::string path, int unit,
                         std::int64_t parameters) {
        model.rows.push_back(
            {next, parent, fmt::format("{}_{}", kind, number), kind, std::move(path), unit, parameters});
        return next++;
    };
    add(-1, "FullyShardedDataParallel", 0, "", 0, 0);
    add(0, "MLP", 0, "", 0, 0);
    add(1, "Sequential", 0, "net", 0, 0);
    const std::int64_t elements = s.layer_bytes() / 4;
    const auto unit = [&](int id, int module, std::string name, std::int64_t size) {
        model.units.push_back({id, module, std::move(name), size, size, size * 4 / s.ranks, size * 4});
    };
    if (!s.per_linear) unit(0, 0, "root", elements * s.layers);
    for (int i = 0; i < s.layers; ++i) {
        Model::Layer layer;
        int parent = 2;
        layer.unit = s.per_linear ? i + 1 : 0;
        if (s.per_linear) {
            parent = layer.wrapper =
                add(2, "FullyShardedDataParallel", i + 1, fmt::format("net.{}", 2 * i), layer.unit, 0);
            unit(layer.unit, layer.wrapper, fmt::format("net.{}", 2 * i), elements);
        }
        layer.linear = add(parent, "Linear", i, fmt::format("net.{}", 2 * i), layer.unit, elements);
        if (i + 1 < s.layers) layer.relu = add(2, "ReLU", i, fmt::format("net.{}", 2 * i + 1), layer.unit, 0);
        model.layers.push_back(layer);
    }
    return model;
}

class RankWriter {
  public:
    RankWriter(const MlpSample& sample, const Model& model, traces::store::EventSink& sink, int rank)
        : sample_(sample),
          model_(model),
          sink_(sink),
          rank_(rank),
          correlation_(1 + rank * std::int64_t{1000000}) {
        sink_.add(RankRow{rank, rank, global_pid(100 + rank), tid(), "node", "Sample processor",
                          std::int64_t{8} << 30});
        sink_.add(ThreadRow{tid(), fmt::format("rank {}", rank), rank});
        for (const auto& [id, name] :
             {std::pair{kCompute, "compute"}, {kUnshard, "unshard"}, {kReduce, "post_backward"}}) {
            sink_.add(StreamRow{rank, id, name});
        }
    }

    void begin() {
        const std::int64_t shards = sample_.layer_bytes() * sample_.layers / sample_.ranks;
        allocate("shards", shards, MemoryCategory::parameters, Phase::setup, -1, 0);
        allocate("momentum", shards, MemoryCategory::optimizer_state, Phase::setup, -1, 0);
    }
    void run() {
        begin();
        for (int step = 1; step <= sample_.steps; ++step) run_step(step);
    }
    void run_step(int step) {
        const std::int64_t start = host_;
        host_ += 3000;
        allocate("input", sample_.activation_bytes(), MemoryCategory::activations, Phase::data, -1, -1);
        const std::int64_t forward_end = forward();
        backward(forward_end);
        const std::int64_t optimizer = host_;
        launch("sgd_step", kCompute, sample_.layer_bytes() * sample_.layers / sample_.ranks / 16,
               busy_[kReduce - kCompute]);
        range("Optimizer.step#SGD.step", -1, optimizer);
        host_ = end() + 2000;
        release("input", Phase::data);
        release("gradient shards", Phase::optimizer);
        range(fmt::format("ProfilerStep#{}", step), -1, start);
        sink_.add(StepRow{rank_, step, start, host_, tid()});
        sink_.add(CounterRow{host_, rank_, sink_.intern("reserved_bytes"),
                             1.1 * static_cast<double>(peak_guess())});
        host_ += 1000;
    }

    std::int64_t end() const { return std::max(host_, *std::max_element(busy_.begin(), busy_.end())); }

  private:
    std::int64_t tid() const { return global_tid(100 + rank_, 100 + rank_); }

    void range(std::string_view name, int module, std::int64_t start) {
        RangeRow row;
        row.start = start;
        row.end = host_;
        row.text = sink_.intern(name);
        row.global_tid = tid();
        row.module = module;
        sink_.add(row);
    }

    // A launch on the host and its kernel on a stream, which starts at `after` or later; returns the kernel's
    // end.
    std::int64_t launch(std::string_view name, int stream, std::int64_t length, std::int64_t after = 0) {
        RuntimeRow call{host_, host_ + 4000, tid(), correlation_, sink_.intern("cudaLaunchKernel_v7000")};
        sink_.add(call);
        host_ += 6000;
        auto& busy = busy_[static_cast<std::size_t>(stream - kCompute)];
        const std::int64_t start = std::max({busy + 500, host_, after});
        KernelRow kernel;
        kernel.start = start;
        kernel.end = busy = start + length;
        kernel.device = rank_;
        kernel.stream = stream;
        kernel.correlation = correlation_++;
        kernel.global_pid = global_pid(100 + rank_);
        kernel.short_name = kernel.demangled_name = sink_.intern(name);
        sink_.add(kernel);
        return busy;
    }

    std::int64_t collective(Operation op, int unit, Phase phase, int stream, std::int64_t bytes,
                            std::int64_t after) {
        const std::int64_t correlation = correlation_;
        const auto name =
            fmt::format("ncclDevKernel_{}_local", kOperationNcclNames[static_cast<std::size_t>(op)]);
        const std::int64_t end = launch(name, stream, bytes / 4 + 1000 * rank_, after);
        CollectiveRow row;
        row.rank = rank_;
        row.correlation = correlation;
        row.operation = op;
        row.bytes = bytes;
        row.group_size = sample_.ranks;
        row.sequence = sequence_++;
        row.unit = unit;
        row.phase = phase;
        sink_.add(row);
        return end;
    }

    void memory(std::string_view name, std::int64_t bytes, MemoryCategory category, Phase phase, int unit,
                int module) {
        MemoryRow row;
        row.time = host_;
        row.rank = rank_;
        row.address = bytes > 0 ? live_[std::string(name)] = next_address_ : live_[std::string(name)];
        if (bytes > 0) next_address_ += static_cast<std::uint64_t>(bytes);
        row.bytes = bytes;
        row.category = category;
        row.phase = phase;
        row.unit = unit;
        row.module = module;
        row.stream = kCompute;
        row.name = sink_.intern(name);
        sink_.add(row);
        host_ += 200;
    }
    void allocate(std::string_view name, std::int64_t bytes, MemoryCategory category, Phase phase, int unit,
                  int module) {
        sizes_[std::string(name)] = {bytes, category, unit, module};
        memory(name, bytes, category, phase, unit, module);
    }
    void release(const std::string& name, Phase phase) {
        const Block& block = sizes_[name];
        memory(name, -block.bytes, block.category, phase, block.unit, block.module);
    }

    std::int64_t unit_bytes(int unit) const {
        for (const UnitRow& row : model_.units) {
            if (row.id == unit) return row.bytes;
        }
        return 0;
    }

    std::int64_t gather(int unit, int module, Phase phase) {
        const std::int64_t start = host_;
        allocate(fmt::format("unit {} flat", unit), unit_bytes(unit), MemoryCategory::unsharded_parameters,
                 phase, unit, module);
        const std::int64_t end =
            collective(Operation::all_gather, unit, phase, kUnshard, unit_bytes(unit), 0);
        range("FullyShardedDataParallel._pre_forward_unshard", module, start);
        return end;
    }

    std::int64_t peak_guess() const { return sample_.layer_bytes() * sample_.layers * 5; }

    std::int64_t forward() {
        const std::int64_t start = host_;
        std::int64_t ready = sample_.per_linear ? 0 : gather(0, 0, Phase::forward);
        for (std::size_t i = 0; i < model_.layers.size(); ++i) {
            const Model::Layer& layer = model_.layers[i];
            const std::int64_t wrapper = host_;
            if (sample_.per_linear) ready = gather(layer.unit, layer.wrapper, Phase::forward);
            const std::int64_t linear = host_;
            allocate(fmt::format("activation {}", i), sample_.activation_bytes(), MemoryCategory::activations,
                     Phase::forward, layer.unit, layer.linear);
            launch("sgemm_tn", kCompute, sample_.layer_bytes() / 3, ready);
            launch("add_bias", kCompute, sample_.activation_bytes() / 16);
            range(fmt::format("nn.Module: Linear_{}", i), layer.linear, linear);
            if (sample_.per_linear) {
                release(fmt::format("unit {} flat", layer.unit), Phase::forward);
                range(fmt::format("nn.Module: FullyShardedDataParallel_{}", i + 1), layer.wrapper, wrapper);
            }
            if (layer.relu < 0) continue;
            const std::int64_t relu = host_;
            launch("relu", kCompute, sample_.activation_bytes() / 16);
            range(fmt::format("nn.Module: ReLU_{}", i), layer.relu, relu);
        }
        for (const auto& [name, module] :
             {std::pair{"Sequential_0", 2}, {"MLP_0", 1}, {"FullyShardedDataParallel_0", 0}}) {
            range(fmt::format("nn.Module: {}", name), module, start - 3 + module);
        }
        return busy_[0];
    }

    void backward(std::int64_t ready) {
        const std::int64_t start = host_;
        const std::int64_t shards = sample_.layer_bytes() * sample_.layers / sample_.ranks;
        for (std::size_t left = model_.layers.size(); left-- > 0;) {
            const Model::Layer& layer = model_.layers[left];
            const std::int64_t begin = host_;
            if (sample_.per_linear) ready = gather(layer.unit, layer.wrapper, Phase::backward);
            const auto gradient = fmt::format("weight gradient {}", left);
            allocate(gradient, sample_.layer_bytes(), MemoryCategory::unsharded_gradients, Phase::backward,
                     layer.unit, layer.linear);
            const std::int64_t computed = launch("sgemm_nt", kCompute, sample_.layer_bytes() / 3, ready);
            launch("sgemm_nn", kCompute, sample_.layer_bytes() / 3);
            range("LinearBackward", layer.linear, begin);
            release(fmt::format("activation {}", left), Phase::backward);
            if (!sample_.per_linear) continue;
            release(fmt::format("unit {} flat", layer.unit), Phase::backward);
            if (left + 1 == model_.layers.size())
                allocate("gradient shards", shards, MemoryCategory::gradients, Phase::backward, -1, 0);
            collective(Operation::reduce_scatter, layer.unit, Phase::backward, kReduce, sample_.layer_bytes(),
                       computed);
            release(gradient, Phase::backward);
        }
        if (!sample_.per_linear) reduce_root();
        range("MeanSquaredErrorBackward", -1, start - 1);
    }

    void reduce_root() {
        const std::int64_t whole = unit_bytes(0);
        allocate("flat gradient", whole, MemoryCategory::unsharded_gradients, Phase::backward, 0, 0);
        allocate("gradient shards", whole / sample_.ranks, MemoryCategory::gradients, Phase::backward, 0, 0);
        for (int i = 0; i < sample_.layers; ++i)
            release(fmt::format("weight gradient {}", i), Phase::backward);
        collective(Operation::reduce_scatter, 0, Phase::backward, kReduce, whole, busy_[0]);
        release("unit 0 flat", Phase::backward);
        release("flat gradient", Phase::backward);
    }

    struct Block {
        std::int64_t bytes = 0;
        MemoryCategory category = MemoryCategory::other;
        int unit = -1, module = -1;
    };
    const MlpSample& sample_;
    const Model& model_;
    traces::store::EventSink& sink_;
    int rank_ = 0;
    std::int64_t host_ = 10000, correlation_ = 1, sequence_ = 0;
    std::array<std::int64_t, 3> busy_{};
    std::uint64_t next_address_ = 4096;
    std::map<std::string, std::uint64_t> live_;
    std::map<std::string, Block> sizes_;
};

void write_head(const MlpSample& sample, const Model& model, traces::store::EventSink& sink) {
    const std::vector<std::pair<std::string, std::string>> config = {
        {"run.ranks", fmt::format("{}", sample.ranks)},
        {"run.steps", fmt::format("{}", sample.steps)},
        {"model.type", "mlp"},
        {"model.width", fmt::format("{}", sample.width)},
        {"data.batch", fmt::format("{}", sample.batch)},
        {"parallel.mode", "fsdp"},
        {"fsdp.wrap", sample.per_linear ? "module:Linear" : "root"}};
    for (const auto& [key, value] : config) sink.add(RunInfoRow{key, value});
    for (const ModuleRow& row : model.rows) sink.add(row);
    for (const UnitRow& row : model.units) sink.add(row);
}

}  // namespace

void write_mlp_sample(const MlpSample& sample, traces::store::EventSink& sink) {
    const Model model = make_model(sample);
    write_head(sample, model, sink);
    for (int rank = 0; rank < sample.ranks; ++rank) {
        RankWriter writer(sample, model, sink, rank);
        writer.run();
    }
    for (int step = 1; step <= sample.steps; ++step) sink.add(LossRow{step, 2.0 / step});
    sink.commit();
}

std::function<void()> mlp_in_progress(const MlpSample& sample, traces::store::EventSink& sink) {
    struct Run {
        MlpSample sample;
        Model model;
        std::vector<RankWriter> ranks;
        int steps = 0;
    };
    const auto run = std::make_shared<Run>(Run{.sample = sample, .model = make_model(sample), .ranks = {}});
    write_head(run->sample, run->model, sink);
    run->ranks.reserve(static_cast<std::size_t>(sample.ranks));
    for (int rank = 0; rank < sample.ranks; ++rank) {
        run->ranks.emplace_back(run->sample, run->model, sink, rank);
        run->ranks.back().begin();
    }
    return [run, &sink] {
        ++run->steps;
        for (RankWriter& rank : run->ranks) rank.run_step(run->steps);
        sink.add(LossRow{run->steps, 2.0 / run->steps});
        sink.commit();
    };
}

std::shared_ptr<const traces::store::Trace> mlp_sample(const MlpSample& sample, const char* path) {
    traces::store::ColumnSink sink;
    sink.set_path(path);
    sink.set_schema_version(1);
    sink.set_ended(true);
    sink.set_start_utc_ns(1700000000LL * 1000000000);
    write_mlp_sample(sample, sink);
    return sink.take();
}

}  // namespace shardscope::viewer
