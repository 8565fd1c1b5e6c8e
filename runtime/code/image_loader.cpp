// SPDX-License-Identifier: Apache-2.0
#include "runtime/code/image_loader.h"

#include "runtime/base/page_size.h"
#include "runtime/code/perf_map.h"
#include "translator/kernel_abi.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <iterator>
#include <mutex>
#include <stdexcept>

namespace ptarmigan::runtime {
namespace {

constexpr std::uint32_t image_base_import = 0xffffffffu;

// In the order of abi::import_names.
const void* import_address(std::uint32_t index) {
    static const void* const addresses[] = {
        reinterpret_cast<const void*>(static_cast<void* (*)(void*, const void*, std::size_t)>(memcpy)),
        reinterpret_cast<const void*>(static_cast<void* (*)(void*, int, std::size_t)>(memset)),
        reinterpret_cast<const void*>(static_cast<void* (*)(void*, const void*, std::size_t)>(memmove)),
        reinterpret_cast<const void*>(static_cast<float (*)(float, float)>(fmodf)),
        reinterpret_cast<const void*>(static_cast<double (*)(double, double)>(fmod)),
        // LLVM makes these of comparisons and selections of scalar halves.
        reinterpret_cast<const void*>(static_cast<float (*)(float, float)>(fmaxf)),
        reinterpret_cast<const void*>(static_cast<float (*)(float, float)>(fminf)),
        reinterpret_cast<const void*>(static_cast<double (*)(double, double)>(fmax)),
        reinterpret_cast<const void*>(static_cast<double (*)(double, double)>(fmin)),
    };
    static_assert(std::size(addresses) == std::size(abi::import_names));
    return addresses[index];
}

[[noreturn]] void malformed(const std::string& name, const char* what) {
    throw std::runtime_error("image of kernel '" + name + "': " + what);
}

void check(const translator::KernelImage& image, const std::string& name) {
    if (image.code_size == 0 || image.code_size > image.bytes.size()) malformed(name, "code size outside the image");
    if (image.entry_offset >= image.code_size) malformed(name, "entry outside the code");
    for (const translator::KernelImage::Relocation& relocation : image.relocations) {
        if (relocation.offset > image.bytes.size() || image.bytes.size() - relocation.offset < 8)
            malformed(name, "relocation outside the image");
        if (relocation.import == image_base_import) {
            if (relocation.addend > image.bytes.size()) malformed(name, "target outside the image");
        } else if (relocation.import >= std::size(abi::import_names)) {
            malformed(name, "unknown import");
        }
    }
    const auto by_offset = [](const translator::LineEntry& a, const translator::LineEntry& b) {
        return a.offset < b.offset;
    };
    if (!std::is_sorted(image.lines.begin(), image.lines.end(), by_offset)) malformed(name, "unsorted line table");
}

// Code ranges for fault handlers: blocks of slots in a list that only grows. A slot is taken under `mutex` and read
// without it. `image` is written last (release) and cleared first, so a reader that sees an image (acquire) sees its
// range; images don't die while their code runs, so the one that a handler looks for stays.
struct Slot {
    std::atomic<std::uintptr_t> begin{0}, end{0};
    std::atomic<const LoadedImage*> image{nullptr};
};

struct SlotBlock {
    static constexpr int size = 256;
    Slot slots[size];
    std::atomic<SlotBlock*> next{nullptr};
};

struct Registry {
    std::mutex mutex; ///< taken for changes only
    SlotBlock first;

    Slot& slot(int index) {
        SlotBlock* block = &first;
        for (; index >= SlotBlock::size; index -= SlotBlock::size) block = block->next.load(std::memory_order_acquire);
        return block->slots[index];
    }

    int add(const LoadedImage* image) {
        const std::lock_guard lock(mutex);
        int index = 0;
        for (SlotBlock* block = &first;; block = block->next.load(std::memory_order_relaxed)) {
            for (Slot& slot : block->slots) {
                if (!slot.image.load(std::memory_order_relaxed)) {
                    slot.begin.store(image->code_begin(), std::memory_order_relaxed);
                    slot.end.store(image->code_end(), std::memory_order_relaxed);
                    slot.image.store(image, std::memory_order_release); // pairs with find_code
                    return index;
                }
                ++index;
            }
            if (!block->next.load(std::memory_order_relaxed))
                block->next.store(new SlotBlock, std::memory_order_release); // pairs with find_code
        }
    }

    void remove(int index) {
        const std::lock_guard lock(mutex);
        slot(index).image.store(nullptr, std::memory_order_release);
    }
};

// Never destroyed: faults may happen while the process exits.
Registry& registry() {
    static Registry* const instance = new Registry;
    return *instance;
}

// A constant-initialised pointer, so that the fault handler does not run a function-local static's guard.
std::atomic<Registry*> handler_registry{nullptr};

} // namespace

std::unique_ptr<LoadedImage> LoadedImage::load(const translator::KernelImage& image, std::string name) {
    check(image, name);
    std::unique_ptr<LoadedImage> loaded(new LoadedImage);
    loaded->name_ = std::move(name);
    const std::size_t size = round_up_to_pages(image.bytes.size());
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory for generated code");
    loaded->base_ = static_cast<std::uint8_t*>(memory);
    loaded->mapped_size_ = size;
    loaded->code_size_ = image.code_size;
    loaded->entry_ = loaded->base_ + image.entry_offset;
    loaded->lines_ = image.lines;
    std::memcpy(loaded->base_, image.bytes.data(), image.bytes.size());
    for (const translator::KernelImage::Relocation& relocation : image.relocations) {
        const auto base = reinterpret_cast<std::uint64_t>(
            relocation.import == image_base_import ? loaded->base_ : import_address(relocation.import));
        const std::uint64_t value = base + relocation.addend;
        std::memcpy(loaded->base_ + relocation.offset, &value, sizeof value);
    }
    // Where host pages are larger than the image's, the constants on the last code page stay executable.
    const std::size_t code = round_up_to_pages(image.code_size);
    if (mprotect(loaded->base_, code, PROT_READ | PROT_EXEC) != 0 ||
        (size > code && mprotect(loaded->base_ + code, size - code, PROT_READ) != 0))
        throw std::runtime_error("the system does not let generated code be executable");
    __builtin___clear_cache(reinterpret_cast<char*>(loaded->base_),
                            reinterpret_cast<char*>(loaded->base_) + image.code_size);
    loaded->slot_ = registry().add(loaded.get());
    handler_registry.store(&registry(), std::memory_order_release);
    add_to_perf_map(*loaded);
    return loaded;
}

LoadedImage::~LoadedImage() {
    if (slot_ >= 0) registry().remove(slot_);
    if (base_) munmap(base_, mapped_size_);
}

const translator::LineEntry* LoadedImage::entry_of(std::uintptr_t address) const noexcept {
    if (address < code_begin() || address >= code_end()) return nullptr;
    const auto offset = static_cast<std::uint32_t>(address - code_begin());
    const auto after =
        std::upper_bound(lines_.begin(), lines_.end(), offset,
                         [](std::uint32_t value, const translator::LineEntry& entry) { return value < entry.offset; });
    return after == lines_.begin() ? nullptr : &*std::prev(after);
}

bool find_code(std::uintptr_t address, CodeLocation& location) noexcept {
    const Registry* registry = handler_registry.load(std::memory_order_acquire);
    if (!registry) return false;
    for (const SlotBlock* block = &registry->first; block; block = block->next.load(std::memory_order_acquire)) {
        for (const Slot& slot : block->slots) {
            const LoadedImage* image = slot.image.load(std::memory_order_acquire);
            if (!image || address < slot.begin.load(std::memory_order_relaxed) ||
                address >= slot.end.load(std::memory_order_relaxed))
                continue;
            const translator::LineEntry* entry = image->entry_of(address);
            location = {image->name().c_str(), entry ? entry->line : 0, entry ? entry->access : std::uint16_t(0),
                        image};
            return true;
        }
    }
    return false;
}

} // namespace ptarmigan::runtime
