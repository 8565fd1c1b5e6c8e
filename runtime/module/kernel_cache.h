// SPDX-License-Identifier: Apache-2.0
// Compiled kernels of this process, in front of the disk cache, in front of the translator library (which is
// loaded on the first miss only). A kernel is compiled once per key, whoever asks and however many at a time.
#pragma once

#include "runtime/code/image_loader.h"
#include "runtime/module/background.h"
#include "translator/compile.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::runtime {

class CompileThread;

/// 128-bit content hash (xxh3) of a module's PTX text.
struct TextHash {
    std::uint64_t low = 0, high = 0;
    bool operator==(const TextHash&) const = default;
};
TextHash hash_text(std::string_view text);

/// A kernel ready to run. Its code stays mapped while anyone holds the pointer.
struct LoadedKernel {
    std::string name;
    const void* entry = nullptr; ///< abi::RunStep if properties.uses_fibers, else abi::RunCta
    translator::KernelProperties properties;
    translator::CompileForm form;                     ///< the one asked for, unless that could not be compiled
    std::uint32_t stack_bytes = 0, largest_frame = 0; ///< KernelImage's
    std::unique_ptr<LoadedImage> image;
};

/// What to compile. The loader is only touched on a miss, under `loader_mutex`, until the kernel's module is emitted:
/// machine code for several kernels of a text is made side by side.
struct KernelRequest {
    ptx::ModuleLoader& loader;
    std::mutex& loader_mutex;
    TextHash text_hash;
    std::string kernel;
    translator::BlockShape shape;
    translator::CompileOptions options;
    bool other_form = false; ///< `options` has the form that worked where the one asked for did not
    /// Whose turn it is on a background thread, where launches' work goes first; none: a launch waits for it.
    std::optional<BackgroundOrder> background;
    /// Makes a loader of the kernel's text for one miss, which takes the place of `loader`: machine code is lifted no
    /// earlier. Empty: `loader` has the text. Throws what get() throws.
    std::function<std::unique_ptr<ptx::ModuleLoader>()> make_loader;
    CompileThread* thread = nullptr; ///< for a miss: who others see that wait for it; the cache's own
};

/// Where and whether compiled kernels are kept between processes.
struct CacheSettings {
    bool enabled = true;
    std::string directory;                       ///< created on the first write, mode 0700
    std::vector<std::string> system_directories; ///< looked into after `directory`, in this order, only read
    std::uint64_t size_limit = 1ull << 30;       ///< bytes; least recently used files go first
    std::string translator_library;              ///< path of libptarmigan-translator.so

    /// PTARMIGAN_CACHE=on|off, PTARMIGAN_CACHE_DIR, PTARMIGAN_CACHE_SYSTEM_DIR (with colons between),
    /// PTARMIGAN_CACHE_SIZE (bytes, or with suffix K, M, G) and PTARMIGAN_TRANSLATOR. Defaults: on,
    /// $XDG_CACHE_HOME/ptarmigan or ~/.cache/ptarmigan, 1G, and the library beside the one that this code is in.
    static CacheSettings from_environment();
};

/// Counters since the start of the process, for reports and tests.
struct CacheStatistics {
    std::uint64_t memory_hits = 0, disk_hits = 0, compilations = 0;
    std::uint64_t rejected_files = 0; ///< files that were found but not trusted
};

/// Thread-safe. Kernels that nobody holds any more leave memory (and come back from disk).
class KernelCache {
public:
    explicit KernelCache(CacheSettings settings);
    ~KernelCache();

    /// The kernel for this request: from memory, from disk, or compiled now. Waits while another thread compiles
    /// the same key; where that is a background thread that gets too little CPU for a launch to wait for it, and can't
    /// be given a higher priority, the launch compiles it, too. A kernel that can't be
    /// compiled as asked for comes in another form, here and from the disk (compilation.h). Throws
    /// translator::UnsupportedError, ptx::DiagnosticError, or std::runtime_error when the translator library can't be
    /// loaded or no form can be compiled. A disk cache that can't be read or written is never an error.
    std::shared_ptr<const LoadedKernel> get(const KernelRequest& request);

    /// The kernel for this request if it is in memory or on disk; null otherwise, and while another thread compiles it.
    std::shared_ptr<const LoadedKernel> find(const KernelRequest& request);

    /// Notes: bytes about a text that cost more to find out than to read back, kept on disk beside the kernels.
    /// `subject` tells the notes of one text apart. Only notes of this very build of the runtime and the translator
    /// come back.
    std::optional<std::vector<std::uint8_t>> note(const TextHash& text, std::string_view subject) const;
    void keep_note(const TextHash& text, std::string_view subject, std::span<const std::uint8_t> contents);

    CacheStatistics statistics() const;

    /// The process-wide cache with settings from the environment, made on first use.
    static KernelCache& process_cache();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// The translator's entry points; loads the library on first use. Throws std::runtime_error naming the path and the
/// reason if it can't be loaded or has another ABI version. For `ptarmigan dump`, and the cache.
const translator::TranslatorApi& translator_api(const std::string& library_path);

} // namespace ptarmigan::runtime
