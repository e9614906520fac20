// See panel_table.h. A new panel is its own file, which defines make_NAME_panel(), and a row here.
#include "viewer/panels/panel_table.h"

#include <stdexcept>
#include <string>

#include "viewer/model/panel.h"

namespace shardscope::viewer::timeline {
std::unique_ptr<model::Panel> make_timeline_panel();
}

namespace shardscope::viewer::panels {

// Each, like make_timeline_panel(), is defined in the panel's own file.
std::unique_ptr<model::Panel> make_start_panel();
std::unique_ptr<model::Panel> make_runs_panel();
std::unique_ptr<model::Panel> make_job_panel();
std::unique_ptr<model::Panel> make_topology_panel();
std::unique_ptr<model::Panel> make_modules_panel();
std::unique_ptr<model::Panel> make_units_panel();
std::unique_ptr<model::Panel> make_memory_panel();
std::unique_ptr<model::Panel> make_summary_panel();
std::unique_ptr<model::Panel> make_operators_panel();
std::unique_ptr<model::Panel> make_kernels_panel();
std::unique_ptr<model::Panel> make_copies_panel();
std::unique_ptr<model::Panel> make_collectives_panel();
std::unique_ptr<model::Panel> make_distributed_panel();
std::unique_ptr<model::Panel> make_schedule_panel();
std::unique_ptr<model::Panel> make_shardmap_panel();
std::unique_ptr<model::Panel> make_samples_panel();
std::unique_ptr<model::Panel> make_idle_panel();
std::unique_ptr<model::Panel> make_advice_panel();
std::unique_ptr<model::Panel> make_compare_panel();
std::unique_ptr<model::Panel> make_training_panel();
std::unique_ptr<model::Panel> make_query_panel();
std::unique_ptr<model::Panel> make_plan_panel();

namespace {

constexpr Stroke kStart[] = {{Shape::line, 1, 8, 8, 1.5F}, {Shape::line, 8, 1.5F, 15, 8},
                             {Shape::line, 3, 7, 3, 15},   {Shape::line, 13, 7, 13, 15},
                             {Shape::line, 3, 15, 13, 15}, {Shape::box, 6.5F, 10, 9.5F, 15}};
constexpr Stroke kRuns[] = {{Shape::box, 1, 2, 4, 5},       {Shape::line, 6, 3.5F, 15, 3.5F},
                            {Shape::box, 1, 6.5F, 4, 9.5F}, {Shape::line, 6, 8, 15, 8},
                            {Shape::box, 1, 11, 4, 14},     {Shape::line, 6, 12.5F, 15, 12.5F}};
constexpr Stroke kTimeline[] = {{Shape::box, 1, 2, 8, 5},
                                {Shape::box, 10, 2, 15, 5},
                                {Shape::box, 4, 6.5F, 12, 9.5F},
                                {Shape::box, 1, 11, 5, 14},
                                {Shape::box, 7, 11, 15, 14}};
constexpr Stroke kJob[] = {{Shape::line, 1, 14.5F, 15, 14.5F},
                           {Shape::box, 1, 2, 15, 5},
                           {Shape::box, 1, 7, 9, 8},
                           {Shape::box, 4, 10, 15, 13}};
constexpr Stroke kTopology[] = {
    {Shape::line, 3, 3, 13, 3},   {Shape::line, 3, 3, 3, 13},   {Shape::line, 13, 3, 13, 13},
    {Shape::line, 3, 13, 13, 13}, {Shape::line, 3, 3, 13, 13},  {Shape::dot, 3, 3, 2.2F, 0},
    {Shape::dot, 13, 3, 2.2F, 0}, {Shape::dot, 3, 13, 2.2F, 0}, {Shape::dot, 13, 13, 2.2F, 0}};
constexpr Stroke kModules[] = {{Shape::box, 1, 1, 7, 5},   {Shape::line, 3, 5, 3, 13},
                               {Shape::line, 3, 8, 8, 8},  {Shape::line, 3, 13, 8, 13},
                               {Shape::box, 8, 6, 15, 10}, {Shape::box, 8, 11, 15, 15}};
constexpr Stroke kUnits[] = {{Shape::box, 1, 1, 7.5F, 7.5F},
                             {Shape::frame, 8.5F, 1, 15, 7.5F},
                             {Shape::frame, 1, 8.5F, 7.5F, 15},
                             {Shape::box, 8.5F, 8.5F, 15, 15}};
constexpr Stroke kMemory[] = {{Shape::line, 1, 13, 4, 9},
                              {Shape::line, 4, 9, 7, 11},
                              {Shape::line, 7, 11, 11, 3},
                              {Shape::line, 11, 3, 15, 8},
                              {Shape::line, 1, 15, 15, 15}};
constexpr Stroke kSummary[] = {
    {Shape::box, 2, 9, 5, 14}, {Shape::box, 6.5F, 2, 9.5F, 14}, {Shape::box, 11, 6, 14, 14}};
constexpr Stroke kOperators[] = {
    {Shape::ring, 8, 8, 6.5F, 0}, {Shape::line, 8, 5, 8, 11}, {Shape::line, 5, 8, 11, 8}};
constexpr Stroke kKernels[] = {{Shape::frame, 4, 4, 12, 12}, {Shape::box, 6.5F, 6.5F, 9.5F, 9.5F},
                               {Shape::line, 6, 1, 6, 4},    {Shape::line, 10, 1, 10, 4},
                               {Shape::line, 6, 12, 6, 15},  {Shape::line, 10, 12, 10, 15},
                               {Shape::line, 1, 6, 4, 6},    {Shape::line, 1, 10, 4, 10},
                               {Shape::line, 12, 6, 15, 6},  {Shape::line, 12, 10, 15, 10}};
constexpr Stroke kSamples[] = {{Shape::box, 1, 1, 15, 4},         {Shape::box, 1, 5, 9.5F, 8},
                               {Shape::box, 10.5F, 5, 14, 8},     {Shape::box, 1, 9, 6, 12},
                               {Shape::box, 10.5F, 9, 12.5F, 12}, {Shape::box, 1, 13, 3.5F, 15}};
constexpr Stroke kCopies[] = {{Shape::frame, 1, 1, 10, 10}, {Shape::box, 6, 6, 15, 15}};
constexpr Stroke kCollectives[] = {{Shape::line, 8, 3, 3, 12},   {Shape::line, 8, 3, 13, 12},
                                   {Shape::line, 3, 12, 13, 12}, {Shape::dot, 8, 3, 2.3F, 0},
                                   {Shape::dot, 3, 12, 2.3F, 0}, {Shape::dot, 13, 12, 2.3F, 0}};
constexpr Stroke kDistributed[] = {{Shape::frame, 1, 1, 6, 6},       {Shape::frame, 10, 1, 15, 6},
                                   {Shape::frame, 1, 10, 6, 15},     {Shape::frame, 10, 10, 15, 15},
                                   {Shape::line, 6, 3.5F, 10, 3.5F}, {Shape::line, 6, 12.5F, 10, 12.5F},
                                   {Shape::line, 3.5F, 6, 3.5F, 10}, {Shape::line, 12.5F, 6, 12.5F, 10}};
constexpr Stroke kSchedule[] = {{Shape::box, 1, 1, 5, 4},
                                {Shape::box, 10, 1, 15, 4},
                                {Shape::box, 3, 6.5F, 7, 9.5F},
                                {Shape::box, 8.5F, 6.5F, 13, 9.5F},
                                {Shape::box, 5, 12, 12, 15}};
constexpr Stroke kShardmap[] = {
    {Shape::box, 1, 1, 5, 5},     {Shape::frame, 6, 1, 10, 5}, {Shape::frame, 11, 1, 15, 5},
    {Shape::box, 1, 6, 5, 10},    {Shape::box, 6, 6, 10, 10},  {Shape::frame, 11, 6, 15, 10},
    {Shape::frame, 1, 11, 5, 15}, {Shape::box, 6, 11, 10, 15}, {Shape::box, 11, 11, 15, 15}};
constexpr Stroke kIdle[] = {
    {Shape::ring, 8, 8, 6.5F, 0}, {Shape::line, 8, 8, 8, 4}, {Shape::line, 8, 8, 11, 9.5F}};
constexpr Stroke kAdvice[] = {
    {Shape::ring, 8, 6, 4.5F, 0}, {Shape::line, 6, 12, 10, 12}, {Shape::line, 6.5F, 14.5F, 9.5F, 14.5F}};
constexpr Stroke kCompare[] = {
    {Shape::frame, 1, 6, 6, 14}, {Shape::box, 10, 2, 15, 14}, {Shape::line, 8, 1, 8, 15}};
constexpr Stroke kTraining[] = {{Shape::line, 2, 1, 2, 14},
                                {Shape::line, 2, 14, 15, 14},
                                {Shape::line, 4, 2, 6, 8},
                                {Shape::line, 6, 8, 9, 10.5F},
                                {Shape::line, 9, 10.5F, 15, 11.5F}};
constexpr Stroke kPlan[] = {{Shape::line, 2, 1, 2, 14},       {Shape::line, 2, 14, 15, 14},
                            {Shape::dot, 5, 3, 1.4F, 0},      {Shape::dot, 7.5F, 7.5F, 1.4F, 0},
                            {Shape::dot, 13, 10.5F, 1.4F, 0}, {Shape::ring, 12, 4.5F, 1.2F, 0}};
constexpr Stroke kQuery[] = {
    {Shape::line, 2, 4, 6, 8}, {Shape::line, 6, 8, 2, 12}, {Shape::line, 8, 13, 14, 13}};

constexpr model::Chord shift(model::Key key) {
    return {key, false, true};
}

constexpr PanelEntry kPanels[] = {
    {"start", "Start", "Trace", kStart, shift(model::Key::digit_9), make_start_panel},
    {"runs", "Runs", "Trace", kRuns, {model::Key::digit_1}, make_runs_panel},
    {"timeline", "Timeline", "Trace", kTimeline, {model::Key::digit_2}, timeline::make_timeline_panel},
    {"job", "Job", "Trace", kJob, {model::Key::j}, make_job_panel},
    {"modules", "Module View", "Model", kModules, {model::Key::digit_3}, make_modules_panel},
    {"units", "Units", "Model", kUnits, {model::Key::digit_4}, make_units_panel},
    {"memory", "Memory", "Model", kMemory, {model::Key::digit_5}, make_memory_panel},
    {"summary", "Execution Summary", "Model", kSummary, {model::Key::digit_6}, make_summary_panel},
    {"operators", "Operators", "Work", kOperators, {model::Key::digit_7}, make_operators_panel},
    {"samples", "Samples", "Work", kSamples, {model::Key::q}, make_samples_panel},
    {"kernels", "Kernels", "Work", kKernels, {model::Key::digit_8}, make_kernels_panel},
    {"copies", "Copies", "Work", kCopies, shift(model::Key::digit_7), make_copies_panel},
    {"collectives", "Collectives", "Work", kCollectives, {model::Key::digit_9}, make_collectives_panel},
    {"distributed", "Distributed", "Work", kDistributed, {model::Key::digit_0}, make_distributed_panel},
    {"topology", "Topology", "Work", kTopology, {model::Key::u}, make_topology_panel},
    {"schedule", "Schedule", "Work", kSchedule, shift(model::Key::digit_8), make_schedule_panel},
    {"shardmap", "Shard map", "Work", kShardmap, shift(model::Key::digit_1), make_shardmap_panel},
    {"idle", "Idle & Path", "Answers", kIdle, shift(model::Key::digit_2), make_idle_panel},
    {"advice", "Advice", "Answers", kAdvice, shift(model::Key::digit_3), make_advice_panel},
    {"compare", "Compare", "Questions", kCompare, shift(model::Key::digit_4), make_compare_panel},
    {"training", "Training", "Questions", kTraining, shift(model::Key::digit_0), make_training_panel},
    {"query", "Query", "Questions", kQuery, shift(model::Key::digit_5), make_query_panel},
    {"plan", "Plan", "Questions", kPlan, shift(model::Key::digit_6), make_plan_panel},
};

}  // namespace

std::span<const PanelEntry> panel_table() {
    return kPanels;
}

const PanelEntry* find_panel(std::string_view name) {
    for (const PanelEntry& entry : kPanels) {
        if (entry.name == name) return &entry;
    }
    return nullptr;
}

std::string_view panel_title(std::string_view name) {
    const PanelEntry* entry = find_panel(name);
    return entry == nullptr ? name : entry->title;
}

std::string_view panel_group(std::string_view name) {
    const PanelEntry* entry = find_panel(name);
    return entry == nullptr ? "" : entry->group;
}

std::unique_ptr<model::Panel> make_panel(std::string_view name) {
    const PanelEntry* entry = find_panel(name);
    if (entry == nullptr) throw std::out_of_range("no panel is called " + std::string(name));
    return entry->make();
}

std::vector<std::unique_ptr<model::Panel>> make_panels() {
    std::vector<std::unique_ptr<model::Panel>> panels;
    for (const PanelEntry& entry : kPanels) panels.push_back(entry.make());
    return panels;
}

}  // namespace shardscope::viewer::panels
