// Every panel with unusual traces: empty, with one event, with zero and negative lengths, with ranges that do
// not nest, with ten thousand rows, with names of a megabyte or without text, with times that a double cannot
// distinguish. None crashes, and the drawn frame stays small.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/viewer/panel_fixture.h"
#include "traces/store/columns/column_sink.h"
#include "viewer/model/panel.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using namespace traces;

constexpr std::int64_t kPid = 1;

void add_rank(store::ColumnSink& sink) {
    sink.add(schema::RankRow{.global_pid = schema::global_pid(kPid),
                             .global_tid = schema::global_tid(kPid, kPid),
                             .host = "host"});
}

void add_kernel(store::ColumnSink& sink, std::string_view name, std::int64_t start, std::int64_t end,
                int stream = 7) {
    schema::KernelRow row;
    row.start = start;
    row.end = end;
    row.stream = stream;
    row.global_pid = schema::global_pid(kPid);
    row.short_name = row.demangled_name = sink.intern(name);
    sink.add(row);
}

void add_copy(store::ColumnSink& sink, std::int64_t start, std::int64_t end, std::int64_t bytes) {
    schema::MemcpyRow row;
    row.start = start;
    row.end = end;
    row.stream = 8;
    row.global_pid = schema::global_pid(kPid);
    row.bytes = bytes;
    sink.add(row);
}

void add_range(store::ColumnSink& sink, std::string_view name, std::int64_t start, std::int64_t end,
               std::int64_t tid = kPid) {
    schema::RangeRow row;
    row.start = start;
    row.end = end;
    row.text = sink.intern(name);
    row.global_tid = schema::global_tid(kPid, tid);
    sink.add(row);
}

void add_allocation(store::ColumnSink& sink, std::int64_t time, std::int64_t bytes) {
    schema::MemoryRow row;
    row.time = time;
    row.bytes = bytes;
    sink.add(row);
}

void add_sample(store::ColumnSink& sink, std::int64_t time, std::string_view stack, std::int64_t weight,
                std::string_view event = "cpu-clock") {
    schema::SampleRow row{.time = time, .global_tid = schema::global_tid(kPid, kPid), .weight = weight};
    row.event = sink.intern(event);
    row.stack = sink.intern(stack);
    sink.add(row);
}

class OddTraces : public PanelsTest {
  protected:
    OddTraces() {
        draw::items::keep(true);
        ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;  // as in the OpenGL backend
    }

    // Draws each panel, zooms it from everything to nothing, and moves a mouse over it that clicks.
    void try_everything(std::unique_ptr<store::Trace> trace, const char* name) {
        session_.add_trace(std::move(trace), name);
        for (const auto& panel : make_panels()) {
            SCOPED_TRACE(std::string(panel->name()) + " of " + name);
            draw(*panel, kWidth, kHeight);
            EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, 4 * 12000);
            model::OpenTrace& entry = *session_.current();
            const model::TimeRange whole = entry.visible;
            for (const std::int64_t length : {whole.length() / 3, std::int64_t{1000}, std::int64_t{1}}) {
                const std::int64_t middle = whole.from + whole.length() / 2;
                entry.visible = {middle - length / 2,
                                 middle - length / 2 + std::max<std::int64_t>(1, length)};
                frame(*panel, kWidth, kHeight);
            }
            entry.visible = whole;
            wander(*panel);
            draw(*panel, kWidth, kHeight);
        }
    }

    void wander(model::Panel& panel) {
        ImGuiIO& io = ImGui::GetIO();
        for (float y = 20; y < kHeight; y += 95 * stride_) {
            for (float x = 20; x < kWidth; x += 155 * stride_) {
                io.MousePos = {x, y};
                for (const bool down : {false, true, false}) {
                    io.MouseDown[0] = down;
                    frame(panel, kWidth, kHeight);
                }
            }
        }
        io.MousePos = {-1e9F, -1e9F};
    }

    static constexpr float kWidth = 1200, kHeight = 700;
    float stride_ = 1;  // of the mouse
};

TEST_F(OddTraces, WithNothingInIt) {
    try_everything(std::make_unique<store::Trace>(), "nothing");
    store::ColumnSink sink;
    add_rank(sink);
    try_everything(sink.take(), "a rank that did nothing");
}

TEST_F(OddTraces, OfOneEvent) {
    store::ColumnSink kernel, range, allocation;
    add_rank(kernel);
    add_kernel(kernel, "gemm", 100, 200);
    try_everything(kernel.take(), "a kernel");
    add_rank(range);
    add_range(range, "ProfilerStep#1", 100, 200);
    try_everything(range.take(), "a range");
    add_rank(allocation);
    add_allocation(allocation, 100, 4096);
    try_everything(allocation.take(), "an allocation");
    store::ColumnSink sample;
    add_sample(sample, 100, "f (p)", 0);
    try_everything(sample.take(), "a sample of no weight");
}

TEST_F(OddTraces, WithEventsOfNoOrNegativeTimeThatDoNotNest) {
    store::ColumnSink sink;
    add_rank(sink);
    for (int i = 0; i < 50; ++i) {
        const std::int64_t t = i * 10;
        add_kernel(sink, "gemm", t, t);
        add_kernel(sink, "before it began", t + 5, t - 5);
        add_copy(sink, t, t + i % 3 - 1, i % 2 == 0 ? 0 : std::int64_t{1} << 60);
        add_range(sink, "crosses the next one", t, t + 15);
        add_range(sink, "no time", t, t);
        add_range(sink, "less than no time", t + 3, t - 3);
        add_allocation(sink, t, i % 2 == 0 ? 1 << 20 : -(1 << 21));  // frees more than is allocated
    }
    try_everything(sink.take(), "lengths of nothing");
}

TEST_F(OddTraces, WithNamesOfAMegabyteAndOfNoText) {
    store::ColumnSink sink;
    add_rank(sink);
    const std::string long_name(1 << 20, 'x'), broken = "\xff\xfe\x80 \xc3", control("a\0b\tc\nd", 7);
    std::int64_t t = 0;
    for (const std::string& name : {long_name, "void " + long_name + "<int>(float*)", broken, control,
                                    std::string(), std::string("%s%n {} ##id ###id")}) {
        add_kernel(sink, name, t, t + 1000);
        add_range(sink, name, t, t + 900);
        add_sample(sink, t, name, 1000, name);
        add_sample(sink, t, "\n" + name + "\n\n(" + name + ")", 1000);
        sink.add(schema::ThreadRow{schema::global_tid(kPid, 10 + t), name, 0});
        add_range(sink, name, t, t + 900, 10 + t);
        sink.add(schema::StreamRow{0, static_cast<int>(t + 8), name});
        add_kernel(sink, name, t, t + 500, static_cast<int>(t + 8));
        sink.add(schema::RunInfoRow{name, name});
        sink.add(schema::CounterRow{.time = t, .name = sink.intern(name), .value = 1e308});
        sink.add(schema::ModuleRow{static_cast<int>(t), -1, name, name, name});
        t += 1000;
    }
    stride_ = 3;  // each frame copies megabytes
    try_everything(sink.take(), "names");
}

TEST_F(OddTraces, WithTimesBeyondTwoToThe53) {
    store::ColumnSink sink;
    add_rank(sink);
    const std::int64_t first = (std::int64_t{1} << 61) + 1;
    add_kernel(sink, "gemm", first, first + 3);
    add_kernel(sink, "gemm", first + 3, first + 4);
    add_range(sink, "ProfilerStep#1", first, first + 10);
    add_allocation(sink, first + 1, 4096);
    add_sample(sink, first + 1, "f (p)", 1);
    try_everything(sink.take(), "late");
    store::ColumnSink wide;
    add_rank(wide);
    add_kernel(wide, "gemm", -first, -first + 5);
    add_kernel(wide, "gemm", first, first + 5);
    add_allocation(wide, -first, 4096);
    add_allocation(wide, first, -4096);
    add_sample(wide, -first, "f (p)", first);
    add_sample(wide, first, "g (p)", first);
    try_everything(wide.take(), "from one end of time to the other");
}

TEST_F(OddTraces, OfTenThousandRows) {
    store::ColumnSink sink;
    add_rank(sink);
    for (int i = 0; i < 10'000; ++i) {
        sink.add(schema::StreamRow{0, i, "stream of its own"});
        add_kernel(sink, "gemm", i, i + 100, i);
    }
    std::unique_ptr<store::Trace> trace = sink.take();
    EXPECT_EQ(timeline::make_tracks(*trace).tracks.size(), 10'000U);
    session_.add_trace(std::move(trace), "rows");
    const auto timeline = make_panel("timeline");
    draw(*timeline, kWidth, kHeight);
    EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, 4 * 12000);
    EXPECT_LT(commands(), 100);
    wander(*timeline);
    session_.go_to({9999, 10'099}, traces::store::RankIndex(0),
                   {model::EventKind::device, 9999});  // scrolls to the last row
    draw(*timeline, kWidth, kHeight);
    EXPECT_TRUE(draw::items::find("timeline.row.rank 0/stream 9999"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
