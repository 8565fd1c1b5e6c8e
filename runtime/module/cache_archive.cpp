// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/cache_archive.h"

#include "runtime/module/cache_key.h"
#include "runtime/module/kernel_file.h"
#include "translator/kernel_abi_version.h"

#include <zstd.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace ptarmigan::runtime {
namespace {

constexpr char magic[8] = {'P', 'T', 'M', 'C', 'A', 'C', 'H', '\n'};
constexpr std::uint64_t archive_version = 1;
/// A kernel's file has some hundred kilobytes; a larger claim is damage, or made to take memory.
constexpr std::uint64_t largest_entry = 256ull << 20;
constexpr std::size_t piece_bytes = 1u << 20;

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePointer = std::unique_ptr<std::FILE, CloseFile>;

std::string reason() {
    return std::strerror(errno);
}

class ArchiveWriter {
public:
    ArchiveWriter(std::FILE* file, const std::string& path) : file_(file), path_(path), context_(ZSTD_createCCtx()) {
        if (!context_) throw std::bad_alloc();
        ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
        ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, 6);
        put(magic, sizeof magic);
        put(&archive_version, sizeof archive_version);
    }
    void number(std::uint64_t value) { compress(&value, sizeof value, ZSTD_e_continue); }
    void bytes(std::span<const std::uint8_t> data) { compress(data.data(), data.size(), ZSTD_e_continue); }
    std::uint64_t finish() {
        compress(nullptr, 0, ZSTD_e_end);
        return written_;
    }

private:
    struct FreeContext {
        void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    };

    void put(const void* data, std::size_t size) {
        if (std::fwrite(data, 1, size, file_) != size) throw ArchiveError("cannot write " + path_ + ": " + reason());
        written_ += size;
    }
    void compress(const void* data, std::size_t size, ZSTD_EndDirective directive) {
        ZSTD_inBuffer input{data, size, 0};
        for (;;) {
            ZSTD_outBuffer output{piece_.data(), piece_.size(), 0};
            const std::size_t left = ZSTD_compressStream2(context_.get(), &output, &input, directive);
            if (ZSTD_isError(left)) throw ArchiveError("cannot write " + path_ + ": " + ZSTD_getErrorName(left));
            put(piece_.data(), output.pos);
            if (directive == ZSTD_e_end ? left == 0 : input.pos == input.size) return;
        }
    }

    std::FILE* const file_;
    const std::string& path_;
    std::unique_ptr<ZSTD_CCtx, FreeContext> context_;
    std::vector<char> piece_ = std::vector<char>(piece_bytes);
    std::uint64_t written_ = 0;
};

class ArchiveReader {
public:
    ArchiveReader(std::FILE* file, const std::string& path) : file_(file), path_(path), context_(ZSTD_createDCtx()) {
        if (!context_) throw std::bad_alloc();
        char start[sizeof magic + sizeof archive_version];
        if (std::fread(start, 1, sizeof start, file_) != sizeof start || std::memcmp(start, magic, sizeof magic) != 0)
            throw ArchiveError(path_ + " is no archive of compiled kernels");
        std::uint64_t version = 0;
        std::memcpy(&version, start + sizeof magic, sizeof version);
        if (version != archive_version)
            throw ArchiveError(path_ + " is an archive of version " + std::to_string(version) + ", not " +
                               std::to_string(archive_version));
    }
    /// False at the end of the files.
    bool next(std::vector<std::uint8_t>& entry) {
        std::uint64_t size = 0;
        read(reinterpret_cast<std::uint8_t*>(&size), sizeof size);
        if (size == 0) return false;
        if (size > largest_entry)
            throw ArchiveError(path_ + " is damaged: a file of " + std::to_string(size) + " bytes");
        // Grows with what is really there: a small archive must not take memory by what it claims.
        entry.clear();
        while (entry.size() < size) {
            const std::size_t at = entry.size(), piece = std::min<std::uint64_t>(size - at, piece_bytes);
            entry.resize(at + piece);
            read(entry.data() + at, piece);
        }
        return true;
    }
    /// Reads up to the end of the frame, whose checksum zstd compares there.
    void finish() {
        std::uint8_t more = 0;
        while (!frame_ended_)
            if (decompress(&more, 1) != 0) throw ArchiveError(path_ + " is damaged: bytes behind its end");
    }

private:
    struct FreeContext {
        void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
    };

    void read(std::uint8_t* to, std::size_t size) {
        while (size != 0) {
            if (frame_ended_) throw ArchiveError(path_ + " is damaged: it ends early");
            const std::size_t got = decompress(to, size);
            to += got;
            size -= got;
        }
    }
    std::size_t decompress(std::uint8_t* to, std::size_t size) {
        if (input_.pos == input_.size) {
            const std::size_t got = std::fread(piece_.data(), 1, piece_.size(), file_);
            if (got == 0 && !may_have_more_) throw ArchiveError(path_ + " is cut short");
            input_ = {piece_.data(), got, 0};
        }
        ZSTD_outBuffer output{to, size, 0};
        const std::size_t left = ZSTD_decompressStream(context_.get(), &output, &input_);
        if (ZSTD_isError(left)) throw ArchiveError(path_ + " is damaged: " + ZSTD_getErrorName(left));
        frame_ended_ = left == 0;
        may_have_more_ = output.pos == output.size; // zstd may hold bytes that had no room
        return output.pos;
    }

    std::FILE* const file_;
    const std::string& path_;
    std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
    std::vector<char> piece_ = std::vector<char>(piece_bytes);
    ZSTD_inBuffer input_{nullptr, 0, 0};
    bool frame_ended_ = false, may_have_more_ = false;
};

/// Counts a file that can't be used, and returns false.
bool usable(const KeyContents& key, const ImportFilter& filter, ImportCounts& counts) {
    if (key.build_id != filter.build_id || (!key.is_note && key.abi_version != abi::kernel_abi_version)) {
        ++counts.other_build;
        return false;
    }
    const auto& targets = filter.targets;
    if (!key.is_note && std::find(targets.begin(), targets.end(), key.target) == targets.end()) {
        ++counts.other_target;
        return false;
    }
    return true;
}

void import_file(DiskCache& cache, const std::vector<std::uint8_t>& bytes, const ImportFilter& filter,
                 ImportCounts& counts) {
    const auto key = stored_key(bytes);
    const auto contents = key ? read_key(*key) : std::nullopt;
    if (!contents) {
        ++counts.damaged;
        return;
    }
    if (!usable(*contents, filter, counts)) return;
    const bool sound =
        contents->is_note ? read_note_file(bytes, *key).has_value() : read_kernel_file(bytes, *key).has_value();
    if (!sound) {
        ++counts.damaged;
        return;
    }
    const std::string name = file_name(*key);
    if (cache.load(name) == bytes) {
        ++counts.present;
        return;
    }
    cache.store(name, bytes);
    ++(cache.load(name) == bytes ? counts.added : counts.not_kept);
}

} // namespace

ExportCounts export_cache(const DiskCache& cache, const std::string& path) {
    const std::string unfinished = path + ".new-" + std::to_string(::getpid());
    ExportCounts counts;
    try {
        const FilePointer file(std::fopen(unfinished.c_str(), "wbx"));
        if (!file) throw ArchiveError("cannot write " + path + ": " + reason());
        ArchiveWriter writer(file.get(), path);
        for (const DiskCache::File& entry : cache.list()) {
            const auto bytes = cache.load(entry.name);
            const auto key = bytes ? stored_key(*bytes) : std::nullopt;
            if (!key || bytes->size() > largest_entry || file_name(*key) != entry.name) {
                ++counts.skipped;
                continue;
            }
            writer.number(bytes->size());
            writer.bytes(*bytes);
            ++counts.files;
        }
        writer.number(0);
        counts.bytes = writer.finish();
        if (std::fflush(file.get()) != 0 || ::rename(unfinished.c_str(), path.c_str()) != 0)
            throw ArchiveError("cannot write " + path + ": " + reason());
    } catch (...) {
        ::unlink(unfinished.c_str());
        throw;
    }
    return counts;
}

ImportCounts import_cache(DiskCache& cache, const std::string& path, const ImportFilter& filter) {
    const FilePointer file(std::fopen(path.c_str(), "rb"));
    if (!file) throw ArchiveError("cannot read " + path + ": " + reason());
    ArchiveReader reader(file.get(), path);
    ImportCounts counts;
    std::vector<std::uint8_t> bytes;
    while (reader.next(bytes)) import_file(cache, bytes, filter, counts);
    reader.finish();
    return counts;
}

} // namespace ptarmigan::runtime
