// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/kernel_cache.h"

#include "frontend/module_loader.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/module/cache_key.h"
#include "runtime/module/compilation.h"
#include "runtime/module/compile_thread.h"
#include "runtime/module/disk_cache.h"
#include "runtime/module/kernel_file.h"
#include "runtime/module/tiers.h"
#include "runtime/module/translator_library.h"
#include "translator/late_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <optional>
#include <pthread.h>
#include <span>
#include <unordered_map>
#include <utility>

namespace ptarmigan::runtime {
namespace {

std::string default_directory() {
    // The XDG rules: a relative path is to be ignored.
    const char* cache_home = std::getenv("XDG_CACHE_HOME");
    if (cache_home && cache_home[0] == '/') return std::string(cache_home) + "/ptarmigan";
    const char* home = std::getenv("HOME");
    if (home && home[0] == '/') return std::string(home) + "/.cache/ptarmigan";
    return {};
}

/// The parts of "A:B".
std::vector<std::string> folders_of(std::string_view list) {
    std::vector<std::string> folders;
    while (!list.empty()) {
        const std::size_t end = list.find(':');
        if (const std::string_view folder = list.substr(0, end); !folder.empty()) folders.emplace_back(folder);
        list.remove_prefix(end == list.npos ? list.size() : end + 1);
    }
    return folders;
}

std::shared_ptr<const LoadedKernel> load(const translator::CompiledKernel& compiled, const std::string& name) {
    auto kernel = std::make_shared<LoadedKernel>();
    kernel->name = name;
    kernel->properties = compiled.properties;
    kernel->form = compiled.form;
    kernel->stack_bytes = compiled.image.stack_bytes;
    kernel->largest_frame = compiled.image.largest_frame;
    kernel->image = LoadedImage::load(compiled.image, is_quick(compiled.form) ? name + " (quick)" : name);
    kernel->entry = kernel->image->entry();
    return kernel;
}

void log_loaded(const LoadedKernel& kernel, const KernelRequest& request, std::string_view how,
                std::chrono::steady_clock::time_point start) {
    const translator::KernelProperties& properties = kernel.properties;
    log(LogLevel::info,
        fmt::format("kernel {}: {} code {} in {}, for blocks of {} threads, {} lanes a step, {}; form: {}", kernel.name,
                    tier_name(kernel.form), how, elapsed(start), fmt::join(request.shape.ntid, "x"),
                    properties.lane_width,
                    properties.uses_fibers   ? "a fiber for each step"
                    : properties.gives_turns ? "barriers between regions, a fiber for each CTA"
                                             : "barriers between regions",
                    describe(kernel.form)));
}

/// A width that is asked for is kept unless the lanes need stacks of their own or count on their warp being one step,
/// which shows in the results of programs that count on steps.
void warn_of_other_width(const LoadedKernel& kernel, const KernelRequest& request) {
    const std::uint32_t asked = request.options.lane_width, lanes = kernel.properties.lane_width;
    const bool as_asked = asked == 0 || lanes == asked || kernel.form.lane_width != asked;
    const bool is_function = !translator::split_late_name(request.kernel).second.empty(); // its kernel was warned of
    if (as_asked || is_function) return;
    const std::string why =
        lanes == 1
            ? "runs lane by lane although PTARMIGAN_LANES={}: lanes of its warps may meet at collectives or "
              "barriers from different places, or wait or exit in functions that are called"
            : "runs the whole warp as one step although PTARMIGAN_LANES={}: its lanes may hand each other what they "
              "write with neither a barrier nor __syncwarp between";
    log_once("lanes of " + kernel.name,
             fmt::format("kernel {}: {}", kernel.name, fmt::format(fmt::runtime(why), asked)));
}

/// One key's kernel. Who compiles it is its maker, for whom others wait; one of those, a launch, may do it beside a
/// maker in the background. `mutex` is held while it is fetched from disk, but not while it is compiled.
struct Entry {
    std::mutex mutex; ///< guards what follows
    std::condition_variable changed;
    std::shared_ptr<CompileThread> maker, beside;
    std::weak_ptr<const LoadedKernel> kernel;
    std::optional<translator::CompileForm> form; ///< where the one that is asked for can't be compiled
    std::string failure;                         ///< where none can: what CompilationFailure said
    /// May it be forgotten when nobody has the kernel?
    bool is_plain() const { return !form && failure.empty(); }
};

/// A thread's place as an entry's maker or beside it, while it compiles. When it leaves, who waits looks again.
class MakerPlace {
public:
    using Place = std::shared_ptr<CompileThread> Entry::*;
    /// Under the entry's mutex, if the place is free.
    MakerPlace(Entry& entry, Place place) : entry_(entry), place_(place) { entry_.*place_ = thread_; }
    ~MakerPlace() { leave(); }
    MakerPlace(const MakerPlace&) = delete;
    MakerPlace& operator=(const MakerPlace&) = delete;

    CompileThread& thread() const { return *thread_; }
    void leave() {
        if (std::exchange(has_left_, true)) return;
        const std::lock_guard lock(entry_.mutex);
        (entry_.*place_).reset();
        entry_.changed.notify_all();
    }

private:
    Entry& entry_;
    const Place place_;
    const std::shared_ptr<CompileThread> thread_ = std::make_shared<CompileThread>();
    bool has_left_ = false;
};

/// Whether `request` is a launch's, or as urgent, so that it does not wait for threads of low priority.
bool waits_at_full_priority(const KernelRequest& request) {
    return !request.background || *request.background == BackgroundOrder::overdue;
}

/// Under `lock`, of the entry's mutex: waits until its kernel is there or somebody has left. True at once or later if
/// this thread had better compile beside the maker.
class MakerWait {
public:
    bool goes_beside(Entry& entry, std::unique_lock<std::mutex>& lock, const KernelRequest& request) {
        if (!request.background && !waits_) waits_.emplace();
        if (!waits_at_full_priority(request) || entry.beside || entry.maker->raise()) {
            entry.changed.wait(lock);
            return false;
        }
        if (entry.maker != watched_) watch_ = {};
        watched_ = entry.maker;
        if (watch_.starves(*watched_)) {
            waits_.reset();
            return true;
        }
        entry.changed.wait_for(lock, StarvationWatch::interval);
        return false;
    }

private:
    std::optional<LaunchWaits> waits_;
    std::shared_ptr<CompileThread> watched_;
    StarvationWatch watch_;
};

struct KeyHash {
    std::size_t operator()(const std::string& key) const { return XXH3_64bits(key.data(), key.size()); }
};

/// The subject of a note about the kernel of that key.
std::string failure_subject(const std::string& key) {
    return "no form of " + file_name(key);
}

} // namespace

TextHash hash_text(std::string_view text) {
    const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
    return {hash.low64, hash.high64};
}

CacheSettings CacheSettings::from_environment() {
    CacheSettings settings;
    settings.enabled = env_flag(Env::cache);
    settings.directory = env_text(Env::cache_dir);
    if (settings.directory.empty()) settings.directory = default_directory();
    settings.system_directories = folders_of(env_text(Env::cache_system_dir));
    if (const auto limit = env_number(Env::cache_size)) settings.size_limit = *limit;
    settings.translator_library = env_text(Env::translator);
    if (settings.translator_library.empty()) settings.translator_library = default_translator_path();
    return settings;
}

// Lock order: Entry::mutex, then KernelRequest::loader_mutex. `mutex` is a leaf.
struct KernelCache::Impl {
    explicit Impl(CacheSettings given)
        : settings(std::move(given)), build_id(translator_build_id(settings.translator_library)) {
        // A library that can't be read can't be told from another, so nothing may be kept for it.
        if (!settings.enabled || build_id.empty()) return;
        if (!settings.directory.empty())
            layers.push_back(std::make_unique<DiskCache>(settings.directory, settings.size_limit));
        for (const std::string& folder : settings.system_directories)
            layers.push_back(std::make_unique<DiskCache>(folder, DiskCache::ReadOnly()));
    }

    std::shared_ptr<Entry> entry(const std::string& key) {
        const std::lock_guard lock(mutex);
        if (entries.size() >= sweep_at) {
            std::erase_if(entries, [](const auto& item) {
                return item.second.use_count() == 1 && item.second->kernel.expired() && item.second->is_plain();
            });
            sweep_at = entries.size() * 2 + 256;
        }
        std::shared_ptr<Entry>& found = entries[key];
        if (!found) found = std::make_shared<Entry>();
        return found;
    }

    void count(std::uint64_t CacheStatistics::*counter) {
        const std::lock_guard lock(mutex);
        ++(statistics.*counter);
    }

    std::shared_ptr<const LoadedKernel> from_disk(const std::string& key, const KernelRequest& request) {
        const auto start = std::chrono::steady_clock::now();
        const auto compiled = find(key, read_kernel_file, [&] { count(&CacheStatistics::rejected_files); });
        if (!compiled) return nullptr;
        auto kernel = load(*compiled, request.kernel);
        if (log_enabled(LogLevel::info)) log_loaded(*kernel, request, "read from the cache", start);
        warn_of_other_width(*kernel, request);
        count(&CacheStatistics::disk_hits);
        return kernel;
    }

    /// What `read(bytes, key)` makes of the first layer's file that it takes; calls `refused()` for each that it does
    /// not.
    template <typename Read, typename Refused>
    auto find(const std::string& key, Read&& read, Refused&& refused) const
        -> decltype(read(std::span<const std::uint8_t>(), key)) {
        if (layers.empty()) return std::nullopt;
        const std::string name = file_name(key);
        for (const auto& layer : layers) {
            const auto bytes = layer->load(name);
            if (!bytes) continue;
            if (auto found = read(*bytes, key)) return found;
            refused();
            log(LogLevel::info, "cache: " + name + " is damaged or foreign: made again");
        }
        return std::nullopt;
    }

    /// Where files are written; null: nowhere.
    DiskCache* own_layer() const { return settings.directory.empty() || layers.empty() ? nullptr : layers[0].get(); }

    /// What a failure took before, in this process or another, is not spent again.
    translator::CompiledKernel compile_once(const KernelRequest& request, const std::string& key, Entry& entry) {
        const translator::TranslatorApi& api = translator_api(settings.translator_library);
        if (const auto known = note(request.text_hash, failure_subject(key))) {
            const std::string failure(known->begin(), known->end());
            keep_failure(entry, failure);
            throw CompilationFailure(failure, false);
        }
        std::unique_ptr<ptx::ModuleLoader> own_loader;
        std::mutex own_mutex;
        if (request.make_loader) own_loader = request.make_loader();
        KernelRequest again{own_loader ? *own_loader : request.loader,
                            own_loader ? own_mutex : request.loader_mutex,
                            request.text_hash,
                            request.kernel,
                            request.shape,
                            request.options,
                            false,
                            request.background,
                            {},
                            request.thread};
        {
            const std::lock_guard lock(entry.mutex);
            again.other_form = entry.form.has_value();
            if (entry.form) static_cast<translator::CompileForm&>(again.options) = *entry.form;
        }
        try {
            translator::CompiledKernel compiled = compile_kernel(api, again);
            const translator::CompileForm& asked = request.options;
            if (compiled.form != asked) {
                const std::lock_guard lock(entry.mutex);
                entry.form = compiled.form;
                static_cast<void>(own_loader.release()); // an attempt may have crashed in the middle of it
            }
            return compiled;
        } catch (const CompilationFailure& failure) {
            static_cast<void>(own_loader.release());
            keep_failure(entry, failure.what());
            const std::string what = std::string(failure.what()) +
                                     " (found out by an earlier process; with PTARMIGAN_CACHE=off it is tried again)";
            if (failure.costly)
                keep_note(request.text_hash, failure_subject(key),
                          {reinterpret_cast<const std::uint8_t*>(what.data()), what.size()});
            throw;
        }
    }

    std::optional<std::vector<std::uint8_t>> note(const TextHash& text, std::string_view subject) const {
        if (layers.empty()) return std::nullopt;
        const std::string key = note_key(build_id, text, subject);
        if (key.empty()) return std::nullopt;
        return find(key, read_note_file, [] {});
    }

    void keep_note(const TextHash& text, std::string_view subject, std::span<const std::uint8_t> contents) {
        DiskCache* own = own_layer();
        if (!own) return;
        const std::string key = note_key(build_id, text, subject);
        if (!key.empty()) own->store(file_name(key), write_note_file(key, contents));
    }

    static void keep_failure(Entry& entry, const std::string& failure) {
        const std::lock_guard lock(entry.mutex);
        entry.failure = failure;
    }

    /// As the entry's maker, or beside it: what is there first is everybody's.
    std::shared_ptr<const LoadedKernel> compile(KernelRequest request, const std::string& key, Entry& entry,
                                                MakerPlace& place) {
        const auto start = std::chrono::steady_clock::now();
        request.thread = &place.thread();
        const translator::CompiledKernel compiled = compile_once(request, key, entry);
        count(&CacheStatistics::compilations);
        auto kernel = load(compiled, request.kernel);
        {
            const std::lock_guard lock(entry.mutex);
            if (auto others = entry.kernel.lock()) return others;
            entry.kernel = kernel;
        }
        place.leave();
        if (log_enabled(LogLevel::info)) log_loaded(*kernel, request, "compiled", start);
        warn_of_other_width(*kernel, request);
        if (DiskCache* own = own_layer()) own->store(file_name(key), write_kernel_file(key, compiled));
        return kernel;
    }

    /// In a forked child, with `mutex` locked: what other threads were compiling nobody will end.
    void forget_other_threads() {
        static auto& lost = *new std::vector<std::shared_ptr<Entry>>; // whose mutexes may stay locked
        for (auto& item : entries) {
            if (item.second.use_count() == 1) continue; // no thread was at it
            lost.push_back(std::move(item.second));
            item.second = std::make_shared<Entry>();
        }
        mutex.unlock();
    }

    const CacheSettings settings;
    const std::string build_id;
    std::vector<std::unique_ptr<DiskCache>> layers; ///< in the order of lookups; empty: nothing is kept
    mutable std::mutex mutex;                       ///< guards what follows
    std::unordered_map<std::string, std::shared_ptr<Entry>, KeyHash> entries;
    std::size_t sweep_at = 256;
    CacheStatistics statistics;
};

KernelCache::KernelCache(CacheSettings settings) : impl_(std::make_unique<Impl>(std::move(settings))) {}

KernelCache::~KernelCache() = default;

std::shared_ptr<const LoadedKernel> KernelCache::find(const KernelRequest& request) {
    const std::string key = kernel_key(impl_->build_id, request);
    const std::shared_ptr<Entry> entry = impl_->entry(key);
    const std::unique_lock lock(entry->mutex, std::try_to_lock);
    if (!lock) return nullptr;
    if (auto kernel = entry->kernel.lock()) {
        impl_->count(&CacheStatistics::memory_hits);
        return kernel;
    }
    if (entry->maker) return nullptr;
    auto kernel = impl_->from_disk(key, request);
    entry->kernel = kernel;
    return kernel;
}

std::shared_ptr<const LoadedKernel> KernelCache::get(const KernelRequest& request) {
    const std::string key = kernel_key(impl_->build_id, request);
    const std::shared_ptr<Entry> entry = impl_->entry(key);
    MakerWait wait;
    std::unique_lock lock(entry->mutex);
    for (;;) {
        if (auto kernel = entry->kernel.lock()) {
            impl_->count(&CacheStatistics::memory_hits);
            return kernel;
        }
        if (!entry->failure.empty()) throw CompilationFailure(entry->failure, false);
        const bool has_maker = entry->maker != nullptr;
        if (has_maker && !wait.goes_beside(*entry, lock, request)) continue;
        if (!has_maker) {
            auto kernel = impl_->from_disk(key, request);
            entry->kernel = kernel;
            if (kernel) return kernel;
        }
        MakerPlace place(*entry, has_maker ? &Entry::beside : &Entry::maker);
        lock.unlock();
        return impl_->compile(request, key, *entry, place);
    }
}

std::optional<std::vector<std::uint8_t>> KernelCache::note(const TextHash& text, std::string_view subject) const {
    return impl_->note(text, subject);
}

void KernelCache::keep_note(const TextHash& text, std::string_view subject, std::span<const std::uint8_t> contents) {
    impl_->keep_note(text, subject, contents);
}

CacheStatistics KernelCache::statistics() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->statistics;
}

KernelCache& KernelCache::process_cache() {
    // Never destroyed: streams may still launch while the process exits.
    static KernelCache* const cache = [] {
        pthread_atfork([] { process_cache().impl_->mutex.lock(); }, [] { process_cache().impl_->mutex.unlock(); },
                       [] { process_cache().impl_->forget_other_threads(); });
        return new KernelCache(CacheSettings::from_environment());
    }();
    return *cache;
}

} // namespace ptarmigan::runtime
