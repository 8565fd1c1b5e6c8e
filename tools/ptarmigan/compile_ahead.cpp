// SPDX-License-Identifier: Apache-2.0
#include "tools/ptarmigan/compile_ahead.h"

#include "runtime/base/log.h"
#include "runtime/base/threads.h"
#include "runtime/module/cache_key.h"
#include "runtime/module/disk_cache.h"
#include "runtime/module/kernel_file.h"
#include "runtime/module/module_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

namespace ptarmigan::tool {
namespace {

std::string name_of(const runtime::TextHash& text, const std::string& kernel) {
    return fmt::format("{:016x}{:016x} {}", text.high, text.low, kernel);
}

std::uint64_t threads_of(const BlockExtents& block) {
    return std::uint64_t{block[0]} * block[1] * block[2];
}

/// The part of a diagnostic that says what is wrong, without its place.
std::string cause_of(const std::string& text, const std::string& kernel = {}) {
    std::string line = text.substr(0, text.find('\n'));
    if (const std::string who = "kernel " + kernel + ": "; line.starts_with(who)) line.erase(0, who.size());
    constexpr std::string_view mark = "error: ";
    const std::size_t at = line.find(mark);
    return at == line.npos ? line : line.substr(at + mark.size());
}

/// A kernel for a block shape.
struct Item {
    std::shared_ptr<runtime::ModuleSource> source;
    runtime::Kernel* kernel = nullptr;
    translator::BlockShape shape;
    bool first_of_kernel = false, guessed = false;
};

class Ahead {
public:
    Ahead(const ProgramTexts& texts, const AheadOptions& options)
        : texts_(texts), options_(options), known_(KnownShapes::from_cache()) {}

    AheadCounts run() {
        runtime::run_on_threads(options_.jobs, [this] {
            while (const auto item = next()) compile(*item);
        });
        return counts_;
    }

private:
    /// Kernels of loaded texts first, so that few texts are in memory at a time.
    std::optional<Item> next() {
        for (;;) {
            const ProgramText* text = nullptr;
            {
                const std::lock_guard lock(mutex_);
                if (!items_.empty()) {
                    Item item = std::move(items_.front());
                    items_.pop_front();
                    return item;
                }
                if (next_text_ == texts_.texts.size()) return std::nullopt;
                text = &texts_.texts[next_text_++];
            }
            load(*text);
        }
    }

    void load(const ProgramText& text) {
        std::shared_ptr<runtime::ModuleSource> source;
        std::string log;
        using runtime::TextUse;
        const runtime::Status status = runtime::ModuleSource::load(
            text.text, text.name, source, log, runtime::BodyCheck::at_first_use,
            text.is_newer || text.machine_code ? TextUse::substitute : TextUse::program, text.machine_code);
        if (status != runtime::Status::success) {
            const bool is_other = log == runtime::unknown_format; // the driver's words for that say less
            fault(is_other      ? "neither PTX, a fat binary, a cubin nor a program with one of them"
                  : log.empty() ? cause_of(runtime::error_detail())
                                : cause_of(log),
                  text.name);
            return;
        }
        std::deque<Item> items;
        for (const auto& kernel : source->kernels()) {
            if (!options_.wanted(kernel->name())) continue;
            const std::size_t before = items.size();
            add_shapes(source, *kernel, items);
            if (items.size() > before)
                items[before].first_of_kernel = true;
            else
                fault("none of the blocks asked for is as small as the kernel allows", kernel->name());
        }
        const std::lock_guard lock(mutex_);
        if (!text.machine_code)
            ++counts_.texts;
        else if (!source->kernels().empty())
            ++counts_.cubins;
        std::move(items.begin(), items.end(), std::back_inserter(items_));
    }

    /// What a launch will ask for: what the kernel requires, else what the user says, else what was asked for before,
    /// else the largest block that the kernel allows, which is what programs say with __launch_bounds__ if they launch
    /// one shape only.
    void add_shapes(const std::shared_ptr<runtime::ModuleSource>& source, runtime::Kernel& kernel,
                    std::deque<Item>& items) const {
        constexpr BlockExtents usual{256, 1, 1};
        const ptx::EntryLimits& limits = kernel.function().limits;
        const auto at_least_one = [](BlockExtents extents) {
            for (std::uint32_t& extent : extents) extent = std::max<std::uint32_t>(extent, 1);
            return extents;
        };
        const std::uint64_t most = limits.max_ntid[0] ? threads_of(at_least_one(limits.max_ntid)) : 1024;
        std::vector<BlockExtents> blocks;
        bool guessed = false;
        if (limits.required_ntid[0] != 0) {
            blocks = {at_least_one(limits.required_ntid)};
        } else if (!options_.blocks.empty()) {
            std::copy_if(options_.blocks.begin(), options_.blocks.end(), std::back_inserter(blocks),
                         [&](const BlockExtents& block) { return threads_of(block) <= most; });
        } else {
            blocks = known_.of(source->text_hash(), kernel.name());
            guessed = blocks.empty();
        }
        if (guessed) blocks = {limits.max_ntid[0] ? at_least_one(limits.max_ntid) : usual};
        translator::BlockShape shape;
        if (limits.required_cluster[0] != 0) shape.cluster = at_least_one(limits.required_cluster);
        for (const BlockExtents& block : blocks) {
            shape.ntid = block;
            items.push_back({source, &kernel, shape, false, guessed && limits.max_ntid[0] == 0});
        }
    }

    void compile(const Item& item) {
        runtime::KernelCode code;
        const runtime::Status status = item.kernel->code(item.shape, true, false, false, code);
        if (status != runtime::Status::success) {
            fault(cause_of(runtime::error_detail(), item.kernel->name()), item.kernel->name());
            return;
        }
        const std::lock_guard lock(mutex_);
        ++counts_.variants;
        counts_.kernels += item.first_of_kernel;
        counts_.guessed += item.guessed;
    }

    void fault(const std::string& cause, const std::string& where) {
        const std::lock_guard lock(mutex_);
        AheadCounts::Fault& fault = counts_.faults[cause];
        if (fault.count++ == 0) fault.first = where;
    }

    const ProgramTexts& texts_;
    const AheadOptions& options_;
    const KnownShapes known_;
    std::mutex mutex_; ///< guards what follows
    std::size_t next_text_ = 0;
    std::deque<Item> items_;
    AheadCounts counts_;
};

} // namespace

KnownShapes KnownShapes::from_cache() {
    const auto settings = runtime::CacheSettings::from_environment();
    KnownShapes known;
    const auto add = [&](const runtime::DiskCache& cache) {
        for (const auto& file : cache.list()) {
            const auto bytes = cache.load(file.name);
            const auto stored = bytes ? runtime::stored_key(*bytes) : std::nullopt;
            const auto key = stored ? runtime::read_key(*stored) : std::nullopt;
            if (!key || key->is_note) continue;
            auto& blocks = known.shapes_[name_of(key->text_hash, key->kernel)];
            if (std::find(blocks.begin(), blocks.end(), key->shape.ntid) == blocks.end())
                blocks.push_back(key->shape.ntid);
        }
    };
    if (!settings.directory.empty()) add(runtime::DiskCache(settings.directory, settings.size_limit));
    for (const std::string& folder : settings.system_directories)
        add(runtime::DiskCache(folder, runtime::DiskCache::ReadOnly()));
    return known;
}

std::vector<BlockExtents> KnownShapes::of(const runtime::TextHash& text, const std::string& kernel) const {
    const auto found = shapes_.find(name_of(text, kernel));
    return found == shapes_.end() ? std::vector<BlockExtents>() : found->second;
}

AheadCounts compile_ahead(const ProgramTexts& texts, const AheadOptions& options) {
    setenv("PTARMIGAN_TIER", "best", 1); // what is kept is good code
    return Ahead(texts, options).run();
}

} // namespace ptarmigan::tool
